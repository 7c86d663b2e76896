// The same workloads as bench/*.c, in Go as one would write it: one program,
// `gorobench WORKLOAD`, one file a workload. This file is the twin of
// measure.h, which says how measuring works.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	defaultSeconds = 0.4
	warmupShare    = 0.25
)

var workloads = map[string]func(){
	"blocking":   blocking,
	"buffered":   buffered,
	"chain":      chain,
	"context":    contextWorkload,
	"crowd":      crowd,
	"echo":       echo,
	"fib":        fibonacci,
	"diskread":   diskread,
	"fileread":   fileread,
	"idle":       idle,
	"idleconns":  idleconns,
	"lateness":   lateness,
	"manytomany": manytomany,
	"memory":     memory,
	"mutex":      mutex,
	"pingpong":   pingpong,
	"pool":       pool,
	"prodcons":   prodcons,
	"rwmutex":    rwmutex,
	"select":     selectWorkload,
	"semaphore":  semaphore,
	"sieve":      sieve,
	"skynet":     skynetWorkload,
	"spawn":      spawn,
	"timers":     timers,
	"waitgroup":  waitgroup,
	"wakeup":     wakeup,
	"syscall":    syscallWorkload,
	"yield":      yield,
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "list" {
		for name := range workloads {
			fmt.Println(name)
		}
		return
	}
	if len(os.Args) < 2 || workloads[os.Args[1]] == nil {
		fail("usage: gorobench WORKLOAD [ARGUMENT...] | list")
	}
	workloads[os.Args[1]]()
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, "bench:", what)
	os.Exit(1)
}

func target() time.Duration {
	seconds := defaultSeconds
	if text := os.Getenv("BENCH_SECONDS"); text != "" {
		seconds, _ = strconv.ParseFloat(text, 64)
	}
	return time.Duration(seconds * 1e9)
}

const (
	maxConns = 10000
	spareFds = 100
)

// manyConns is how many connections to have at most: as many as descriptors allow,
// two for each. (Go raises the limit by itself.)
func manyConns() int {
	var files syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	if files.Max < 2*maxConns+spareFds {
		return int(files.Max-spareFds) / 2
	}
	return maxConns
}

// repeat repeats round for at least d and returns the mean nanoseconds of one.
func repeat(round func() uint64, d time.Duration, check uint64) float64 {
	start := time.Now()
	for rounds := 1; ; rounds++ {
		if round() != check {
			fail("two rounds differ in their checksum")
		}
		if elapsed := time.Since(start); elapsed >= d {
			return float64(elapsed.Nanoseconds()) / float64(rounds)
		}
	}
}

// measure warms up and measures; a round counts as ops operations.
func measure(round func() uint64, ops float64) (nsPerOp float64, check uint64) {
	warm := time.Now().Add(time.Duration(float64(target()) * warmupShare))
	check = round()
	if left := time.Until(warm); left > 0 {
		repeat(round, left, check)
	}
	return repeat(round, target(), check) / ops, check
}

// cpu is the CPU time that the whole process has used.
func cpu() int64 {
	const processClock = 2 // CLOCK_PROCESS_CPUTIME_ID
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

func statusBytes(field string) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		fail(err.Error())
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) > 1 && words[0] == field+":" {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			return kib * 1024
		}
	}
	fail("no " + field + " in /proc/self/status")
	return 0
}

func memoryBytes() int64 {
	return statusBytes("VmRSS") + statusBytes("VmPTE")
}

func report(name string, value float64, unit, check string) {
	fmt.Printf("{\"name\":%q,\"procs\":%d,\"value\":%.3f,\"unit\":%q,\"check\":%q}\n",
		name, runtime.GOMAXPROCS(0), value, unit, check)
}

// reportLatency prints the median and the 99th percentile of samples in
// nanoseconds, which it sorts; the second with the whole distribution.
func reportLatency(name string, samples []int64, check string) {
	slices.Sort(samples)
	quantile := func(q float64) float64 {
		return float64(samples[min(int(q*float64(len(samples))), len(samples)-1)]) / 1e3
	}
	report(name+".p50", quantile(.5), "us", check)
	var points []string
	for _, q := range []float64{0, .01, .05, .1, .25, .5, .75, .9, .95, .99, .995, .999, 1} {
		points = append(points, fmt.Sprintf("[%g,%.3f]", q, quantile(q)))
	}
	fmt.Printf("{\"name\":%q,\"procs\":%d,\"value\":%.3f,\"unit\":\"us\","+
		"\"quantiles\":[%s],\"check\":%q}\n",
		name+".p99", runtime.GOMAXPROCS(0), quantile(.99), strings.Join(points, ","), check)
}
