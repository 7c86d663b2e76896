package main

import (
	"fmt"
	"io"
	"net"
	"sync"
)

const echoBytes = 64

func must(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func echoServer(c net.Conn) {
	var buf [echoBytes]byte
	for {
		n, err := c.Read(buf[:])
		if err != nil {
			break
		}
		_, err = c.Write(buf[:n])
		must(err)
	}
	c.Close()
}

func echoConnect(conns int) (clients []net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	for i := 0; i < conns; i++ {
		client, err := net.Dial("tcp", l.Addr().String())
		must(err)
		c, err := l.Accept()
		must(err)
		go echoServer(c)
		clients = append(clients, client)
	}
	l.Close()
	return clients
}

func echoTalk(c net.Conn, trips int, sum *uint64, wg *sync.WaitGroup) {
	var buf [echoBytes]byte
	for i := 0; i < trips; i++ {
		buf[0]++
		_, err := c.Write(buf[:])
		must(err)
		_, err = io.ReadFull(c, buf[:])
		must(err)
		*sum += uint64(buf[0])
	}
	wg.Done()
}

func echoMeasure(name string, conns, trips int) {
	clients := echoConnect(conns)
	round := func() (sum uint64) {
		var wg sync.WaitGroup
		sums := make([]uint64, conns)
		wg.Add(conns)
		for i, c := range clients {
			go echoTalk(c, trips, &sums[i], &wg)
		}
		wg.Wait()
		for _, s := range sums {
			sum += s
		}
		return sum
	}
	ns, check := measure(round, float64(conns*trips))
	report(name, 1e9/ns, "/s", fmt.Sprint(check))
	for _, c := range clients {
		// By a reset, not by TIME_WAIT, or the next run would find no ports.
		must(c.(*net.TCPConn).SetLinger(0))
		c.Close()
	}
}

func echo() {
	echoMeasure("echo.1", 1, 1000)
	echoMeasure("echo.100", 100, 20)
	echoMeasure("echo.1000", 1000, 5)
	echoMeasure("echo.10000", manyConns(), 1)
}
