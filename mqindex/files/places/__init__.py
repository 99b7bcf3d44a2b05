"""Where files are: this machine, an object store, HDFS. A room of `files`: no other opens, lists or looks at one."""
