"""The data sources: files as DataFrames, in Arrow batches."""
