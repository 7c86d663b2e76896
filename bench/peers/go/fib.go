package main

import (
	"fmt"
	"sync"
)

const (
	fibN     = 25
	fibCalls = 242785 // calls that fib(25) makes, itself included
)

func fib(n int, result *uint64, wg *sync.WaitGroup) {
	if n < 2 {
		*result = uint64(n)
	} else {
		var halves sync.WaitGroup
		var a, b uint64
		halves.Add(2)
		go fib(n-1, &a, &halves)
		go fib(n-2, &b, &halves)
		halves.Wait()
		*result = a + b
	}
	wg.Done()
}

func fibRound() (result uint64) {
	var wg sync.WaitGroup
	wg.Add(1)
	go fib(fibN, &result, &wg)
	wg.Wait()
	return result
}

func fibonacci() {
	ns, check := measure(fibRound, fibCalls)
	report("fib", ns, "ns", fmt.Sprint(check))
}
