package main

import "fmt"

const (
	selectChannels = 4
	selectValues   = 10000 // per channel and round
)

func selectProducer(c chan<- uint64) {
	for i := uint64(1); i <= selectValues; i++ {
		c <- i
	}
}

func selectRound(capacity int) (sum uint64) {
	var c [selectChannels]chan uint64
	for i := range c {
		c[i] = make(chan uint64, capacity)
		go selectProducer(c[i])
	}
	for i := 0; i < selectChannels*selectValues; i++ {
		select {
		case v := <-c[0]:
			sum += v
		case v := <-c[1]:
			sum += v * 2
		case v := <-c[2]:
			sum += v * 3
		case v := <-c[3]:
			sum += v * 4
		}
	}
	return sum
}

func selectWorkload() {
	ns, check := measure(func() uint64 { return selectRound(0) }, selectChannels*selectValues)
	report("select.wait", ns, "ns", fmt.Sprint(check))
	ns, check = measure(func() uint64 { return selectRound(128) }, selectChannels*selectValues)
	report("select.ready", ns, "ns", fmt.Sprint(check))
}
