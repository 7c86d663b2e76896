package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

const (
	latenessSleeps = 200
	latenessHogs   = 2 // a processor
	latenessSleep  = time.Millisecond
)

func latenessHog() {
	for {
	}
}

func latenessReport(what string, d []time.Duration) {
	slices.Sort(d)
	us := func(i int) float64 { return float64(d[i].Nanoseconds()) / 1e3 }
	report("lateness."+what+".p50", us(latenessSleeps/2), "us", fmt.Sprint(latenessSleeps))
	report("lateness."+what+".p99", us(latenessSleeps*99/100), "us", fmt.Sprint(latenessSleeps))
}

func latenessSockets() (a, b net.Conn) {
	fd, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		fail(err.Error())
	}
	a, err = net.FileConn(os.NewFile(uintptr(fd[0]), "a"))
	if err != nil {
		fail(err.Error())
	}
	b, err = net.FileConn(os.NewFile(uintptr(fd[1]), "b"))
	if err != nil {
		fail(err.Error())
	}
	return a, b
}

func lateness() {
	socketTrip := make([]time.Duration, latenessSleeps)
	here, there := latenessSockets()
	go io.Copy(there, there)
	c := []byte("x")
	late := make([]time.Duration, latenessSleeps)
	trip := make([]time.Duration, latenessSleeps)
	in, out := make(chan uint64), make(chan uint64)
	for i := 0; i < latenessHogs*runtime.GOMAXPROCS(0); i++ {
		go latenessHog()
	}
	go func() {
		for v := range in {
			out <- v
		}
	}()
	time.Sleep(20 * time.Millisecond) // until all of them run
	for i := range late {
		start := time.Now()
		time.Sleep(latenessSleep)
		late[i] = time.Since(start) - latenessSleep
		start = time.Now()
		in <- 0
		<-out
		trip[i] = time.Since(start)
		start = time.Now()
		here.Write(c)
		here.Read(c)
		socketTrip[i] = time.Since(start)
	}
	latenessReport("sleep", late)
	latenessReport("chan", trip)
	latenessReport("socket", socketTrip)
}
