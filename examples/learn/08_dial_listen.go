package main

import (
	"fmt"
	"net"
)

func serve(ln net.Listener) {
	conn, _ := ln.Accept()
	buf := make([]byte, 64)
	n, _ := conn.Read(buf)
	fmt.Printf("server: got %s\n", buf[:n])
	conn.Write([]byte("pong"))
	conn.Close()
}

func main() {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	go serve(ln)
	conn, _ := net.Dial("tcp", ln.Addr().String())
	conn.Write([]byte("ping"))
	buf := make([]byte, 64)
	n, _ := conn.Read(buf)
	fmt.Printf("client: got %s\n", buf[:n])
	conn.Close()
	ln.Close()
}
