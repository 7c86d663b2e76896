package main

import (
	"fmt"
	"sync"
)

const (
	phaseGoroutines = 8
	phases          = 1000 // per round
)

func waitgroupRound() (sum uint64) {
	var gate [2]sync.WaitGroup
	var arrived, ended sync.WaitGroup
	var part [phaseGoroutines]paddedCount
	gate[0].Add(1)
	gate[1].Add(1)
	ended.Add(phaseGoroutines)
	for me := 0; me < phaseGoroutines; me++ {
		go func() {
			for phase := 0; phase < phases; phase++ {
				gate[phase%2].Wait()
				part[me].n += uint64(phase + me)
				arrived.Done()
			}
			ended.Done()
		}()
	}
	for phase := 0; phase < phases; phase++ {
		arrived.Add(phaseGoroutines)
		gate[phase%2].Done()
		arrived.Wait()
		gate[phase%2].Add(1)
	}
	ended.Wait()
	for i := range part {
		sum += part[i].n
	}
	return sum
}

func waitgroup() {
	ns, check := measure(waitgroupRound, phaseGoroutines*phases)
	report("waitgroup", ns, "ns", fmt.Sprint(check))
}
