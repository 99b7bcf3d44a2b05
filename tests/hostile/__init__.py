"""Any content of a file ends in a result or an `MQIndexError`: no crash, no hang, no other error."""
