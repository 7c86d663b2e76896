package main

import "fmt"

const (
	bufferedCapacity = 128
	bufferedValues   = 50000 // per round
)

func bufferedProducer(c chan<- uint64) {
	for i := uint64(1); i <= bufferedValues; i++ {
		c <- i
	}
	close(c)
}

func bufferedRound() (sum uint64) {
	c := make(chan uint64, bufferedCapacity)
	go bufferedProducer(c)
	for v := range c {
		sum += v
	}
	return sum
}

func buffered() {
	ns, check := measure(bufferedRound, bufferedValues)
	report("buffered", ns, "ns", fmt.Sprint(check))
}
