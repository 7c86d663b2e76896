package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var first, others atomic.Int32

func work(wg *sync.WaitGroup) {
	for until := time.Now().Add(time.Millisecond); time.Now().Before(until); {
	}
	me := int32(syscall.Gettid())
	if !first.CompareAndSwap(0, me) && first.Load() != me {
		others.Add(1)
	}
	wg.Done()
}

func main() {
	runtime.GOMAXPROCS(2)
	var wg sync.WaitGroup
	wg.Add(100)
	for i := 0; i < 100; i++ {
		go work(&wg)
	}
	wg.Wait()
	some := "none"
	if others.Load() > 0 {
		some = "some"
	}
	fmt.Println("run by another thread than the first:", some)
}
