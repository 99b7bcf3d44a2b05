"""The promises of the package as a whole: names, imports, layouts, documents."""
