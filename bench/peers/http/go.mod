module goro/bench/http

go 1.23
