package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

const connections = 400

func reader(conn net.Conn, lengths chan int) {
	buf := make([]byte, 16)
	n, _ := conn.Read(buf)
	lengths <- n
	conn.Close()
}

func threads() int {
	tasks, _ := os.ReadDir("/proc/self/task")
	return len(tasks)
}

func main() {
	lengths := make(chan int)
	ln, _ := net.Listen("unix", "@09_many_waiting")
	var conns []net.Conn
	for i := 0; i < connections; i++ {
		conn, _ := net.Dial("unix", "@09_many_waiting")
		other, _ := ln.Accept()
		conns = append(conns, conn)
		go reader(other, lengths)
	}
	time.Sleep(20 * time.Millisecond)
	few := "no"
	if threads() < 20 {
		few = "yes"
	}
	fmt.Printf("%d readers wait on fewer than 20 threads: %s\n", connections, few)
	for _, conn := range conns {
		conn.Write([]byte("hello"))
	}
	sum := 0
	for i := 0; i < connections; i++ {
		sum += <-lengths
	}
	fmt.Println(sum, "bytes came")
}
