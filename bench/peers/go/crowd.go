package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The same requests to the same server, as one would write them in Go: conns that park
// their goroutine. The server is goro's program: see crowd.h.

const (
	crowdRequests = 20
	crowdPollMs   = 1000
)

type crowdRun struct {
	n     int
	conns []net.Conn // of sockets
	port  string
	took  []int64
	right atomic.Int64
}

func crowdServer(kind string, n int, files []*os.File) (*exec.Cmd, string) {
	program := os.Getenv("CROWD_SERVER")
	if program == "" {
		fail("CROWD_SERVER is to be goro's bench_crowd")
	}
	cmd := exec.Command(program, "serve", kind, strconv.Itoa(n))
	cmd.ExtraFiles = files
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fail(err.Error())
	}
	if files != nil {
		return cmd, ""
	}
	port, _ := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(port)
}

func (c *crowdRun) pairs() []*os.File {
	var theirs []*os.File
	for i := 0; i < c.n; i++ {
		fd, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			fail(err.Error())
		}
		ours := os.NewFile(uintptr(fd[0]), "")
		conn, err := net.FileConn(ours)
		if err != nil {
			fail(err.Error())
		}
		ours.Close()
		c.conns = append(c.conns, conn)
		theirs = append(theirs, os.NewFile(uintptr(fd[1]), ""))
	}
	return theirs
}

func (c *crowdRun) count(i, k int, since time.Time, right bool) {
	c.took[i*crowdRequests+k] = time.Since(since).Nanoseconds()
	if right {
		c.right.Add(1)
	}
}

func (c *crowdRun) askBytes(i int, conn net.Conn) {
	b := []byte{'x'}
	for k := 0; k < crowdRequests; k++ {
		since := time.Now()
		_, err := conn.Write(b)
		if err == nil {
			_, err = conn.Read(b)
		}
		c.count(i, k, since, err == nil && b[0] == 'x')
	}
}

func (c *crowdRun) askSocket(i int) { c.askBytes(i, c.conns[i]) }

func (c *crowdRun) askTLS(i int) {
	conn, err := tls.Dial("tcp", "127.0.0.1:"+c.port, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	c.askBytes(i, conn)
	conn.Close()
}

// A client of its own for each, as each has a handle of its own with libcurl.
func (c *crowdRun) askHTTP(i int) {
	transport := &http.Transport{}
	client := http.Client{Transport: transport}
	for k := 0; k < crowdRequests; k++ {
		since := time.Now()
		reply, err := client.Get("http://127.0.0.1:" + c.port + "/")
		var body []byte
		if err == nil {
			body, err = io.ReadAll(reply.Body)
			reply.Body.Close()
		}
		c.count(i, k, since, err == nil && len(body) == 2)
	}
	transport.CloseIdleConnections()
}

func crowdAll(n int, fn func(i int)) {
	var wg sync.WaitGroup
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			fn(i)
			wg.Done()
		}()
	}
	wg.Wait()
}

func crowdRequestsOf(kind, what string, n int, ask func(*crowdRun, int)) {
	c := &crowdRun{n: n, took: make([]int64, n*crowdRequests)}
	var files []*os.File
	if kind == "pairs" {
		files = c.pairs()
	}
	server, port := crowdServer(kind, n, files)
	for _, f := range files {
		f.Close()
	}
	c.port = port
	before := cpu()
	since := time.Now()
	crowdAll(n, func(i int) { ask(c, i) })
	wall := time.Since(since).Nanoseconds()
	used := cpu() - before
	check := fmt.Sprintf("%d of %d", c.right.Load(), n*crowdRequests)
	slices.Sort(c.took)
	name := fmt.Sprintf("crowd.%s.%d", what, n)
	report(name, float64(wall)/1e6, "ms", check)
	report(name+".cpu", float64(used)/1e6, "ms", check)
	report(name+".p99", float64(c.took[len(c.took)*99/100])/1e3, "us", check)
	server.Process.Kill()
	server.Wait()
	for _, conn := range c.conns {
		conn.Close()
	}
}

func crowdSleepers(n int) {
	var begun, all atomic.Int64
	since := time.Now()
	crowdAll(n, func(int) {
		if begun.Add(1) == int64(n) {
			all.Store(time.Since(since).Nanoseconds())
		}
		syscall.Syscall(syscall.SYS_POLL, 0, 0, crowdPollMs)
	})
	report(fmt.Sprintf("crowd.poll.%d", n), float64(all.Load())/1e6, "ms", fmt.Sprint(begun.Load()))
	runtime.KeepAlive(&begun)
}

func crowd() {
	numbers := []int{100, 1000, 5000}
	only := ""
	if len(os.Args) == 4 {
		only = os.Args[2]
		n, _ := strconv.Atoi(os.Args[3])
		numbers = []int{n}
	}
	for _, n := range numbers {
		if only == "" || only == "poll" {
			crowdSleepers(n)
		}
		if only == "" || only == "sockets" {
			crowdRequestsOf("pairs", "sockets", n, (*crowdRun).askSocket)
		}
		if only == "" || only == "curl" {
			crowdRequestsOf("curl", "curl", n, (*crowdRun).askHTTP)
		}
		if only == "" || only == "tls" {
			crowdRequestsOf("tls", "tls", n, (*crowdRun).askTLS)
		}
	}
}
