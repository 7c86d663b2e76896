package main

import "fmt"

const (
	prodconsCapacity = 0
	prodconsValues   = 50000 // per round
)

func prodconsProducer(c chan<- uint64) {
	for i := uint64(1); i <= prodconsValues; i++ {
		c <- i
	}
	close(c)
}

func prodconsRound() (sum uint64) {
	c := make(chan uint64, prodconsCapacity)
	go prodconsProducer(c)
	for v := range c {
		sum += v
	}
	return sum
}

func prodcons() {
	ns, check := measure(prodconsRound, prodconsValues)
	report("prodcons", ns, "ns", fmt.Sprint(check))
}
