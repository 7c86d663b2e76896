package main

import (
	"fmt"
	"sync"
)

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

func skynetJoin(number, size uint64, sum *uint64, up *sync.WaitGroup) {
	defer up.Done()
	*sum = number
	if size == 1 {
		return
	}
	var all sync.WaitGroup
	var part [skynetDegree]uint64
	all.Add(skynetDegree)
	for i := range part {
		go skynetJoin(number+uint64(i)*(size/skynetDegree), size/skynetDegree, &part[i], &all)
	}
	all.Wait()
	*sum = 0
	for _, p := range part {
		*sum += p
	}
}

func skynetJoinRound() (sum uint64) {
	var wg sync.WaitGroup
	wg.Add(1)
	go skynetJoin(0, skynetLeaves, &sum, &wg)
	wg.Wait()
	return sum
}

func skynetWorkload() {
	ns, check := measure(skynetRound, 1e6)
	report("skynet", ns, "ms", fmt.Sprint(check))
	ns, check = measure(skynetJoinRound, 1e6)
	report("skynet.join", ns, "ms", fmt.Sprint(check))
}
