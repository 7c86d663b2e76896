package main

import "fmt"

const (
	skynetLeaves = 1000000
	skynetDegree = 10
)

func skynet(up chan<- uint64, number, size uint64) {
	if size == 1 {
		up <- number
		return
	}
	c := make(chan uint64)
	for i := uint64(0); i < skynetDegree; i++ {
		go skynet(c, number+i*(size/skynetDegree), size/skynetDegree)
	}
	sum := uint64(0)
	for i := 0; i < skynetDegree; i++ {
		sum += <-c
	}
	up <- sum
}

func skynetRound() uint64 {
	c := make(chan uint64)
	go skynet(c, 0, skynetLeaves)
	return <-c
}

func skynetWorkload() {
	ns, check := measure(skynetRound, 1e6)
	report("skynet", ns, "ms", fmt.Sprint(check))
}
