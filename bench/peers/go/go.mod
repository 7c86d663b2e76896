module gorobench

go 1.23
