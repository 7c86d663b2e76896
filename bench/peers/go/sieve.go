package main

import "fmt"

const sievePrimes = 1500

func sieveGenerate(out chan<- int32, done <-chan int32) {
	defer close(out)
	for i := int32(2); ; i++ {
		select {
		case out <- i:
		case <-done:
			return
		}
	}
}

func sieveFilter(in <-chan int32, out chan<- int32, prime int32) {
	for i := range in {
		if i%prime != 0 {
			out <- i
		}
	}
	close(out)
}

func sieveRound() (sum uint64) {
	c, done := make(chan int32), make(chan int32)
	go sieveGenerate(c, done)
	for i := 0; i < sievePrimes; i++ {
		prime := <-c
		sum += uint64(prime)
		next := make(chan int32)
		go sieveFilter(c, next, prime)
		c = next
	}
	close(done)
	for range c {
	}
	return sum
}

func sieve() {
	ns, check := measure(sieveRound, 1e6)
	report("sieve", ns, "ms", fmt.Sprint(check))
}
