package main

import (
	"fmt"
	"runtime"
	"sync"
)

func waitFor(gate chan int, wg *sync.WaitGroup) {
	wg.Done()
	<-gate
}

func main() {
	gate := make(chan int)
	var wg sync.WaitGroup
	fmt.Println("at first", runtime.NumGoroutine())
	wg.Add(10)
	for i := 0; i < 10; i++ {
		go waitFor(gate, &wg)
	}
	wg.Wait()
	fmt.Println("while ten wait", runtime.NumGoroutine())
	close(gate)
	for runtime.NumGoroutine() > 1 {
		runtime.Gosched()
	}
	fmt.Println("at last", runtime.NumGoroutine())
}
