package main

import (
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

const idleTime = 6 * time.Second

// Ends by a reset, not by TIME_WAIT, or the next run would find no ports.
func connectTo(address syscall.Sockaddr) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER,
			&syscall.Linger{Onoff: 1})
	}
	if err == nil {
		err = syscall.Connect(fd, address)
	}
	if err != nil {
		fail(err.Error())
	}
	return fd
}

func reportBytesOf(name string, before int64, conns int) {
	report(name, float64(memoryBytes()-before)/float64(conns), "B",
		fmt.Sprintf("%d connections", conns))
}

func idleconns() {
	conns := manyConns()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err.Error())
	}
	address := &syscall.SockaddrInet4{
		Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	client := make([]int, conns)
	var ended sync.WaitGroup
	before := memoryBytes()
	ended.Add(conns)
	for i := range client {
		client[i] = connectTo(address)
		c, err := l.Accept()
		if err != nil {
			fail(err.Error())
		}
		go func() {
			var buf [64]byte
			for {
				if _, err := c.Read(buf[:]); err != nil {
					break
				}
			}
			c.Close()
			ended.Done()
		}()
	}
	time.Sleep(50 * time.Millisecond) // until all wait
	reportBytesOf("idleconns.bytes.new", before, conns)
	time.Sleep(idleTime)
	debug.FreeOSMemory() // what its collector would find sooner or later
	reportBytesOf("idleconns.bytes", before, conns)
	for _, fd := range client {
		syscall.Close(fd)
	}
	ended.Wait()
}
