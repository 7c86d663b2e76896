// What examples/httpd.c does for GET /, with net/http: the server that bench/http
// measures.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "httpd:", err)
	os.Exit(1)
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "Hello, World!\n")
	})
	fmt.Printf("listening on port %d, gomaxprocs %d\n",
		l.Addr().(*net.TCPAddr).Port, runtime.GOMAXPROCS(0))
	fail(http.Serve(l, nil))
}
