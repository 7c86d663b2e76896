package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	contextDegree  = 100
	contextWaiters = 1000 // per round
)

func contextTreeRound() (cancelled uint64) {
	var leaf [contextDegree][contextDegree]context.Context
	root, cancel := context.WithCancel(context.Background())
	for i := range leaf {
		child, cancelChild := context.WithCancel(root)
		defer cancelChild()
		for j := range leaf[i] {
			var cancelLeaf context.CancelFunc
			leaf[i][j], cancelLeaf = context.WithCancel(child)
			defer cancelLeaf()
		}
	}
	cancel()
	for i := range leaf {
		for j := range leaf[i] {
			if leaf[i][j].Err() == context.Canceled {
				cancelled++
			}
		}
	}
	return cancelled
}

func contextWaitRound() uint64 {
	ctx, cancel := context.WithCancel(context.Background())
	work := make(chan int)
	var ready, ended sync.WaitGroup
	var cancelled atomic.Uint64
	ready.Add(contextWaiters)
	ended.Add(contextWaiters)
	for i := 0; i < contextWaiters; i++ {
		go func() {
			ready.Done()
			select {
			case <-ctx.Done():
				cancelled.Add(1)
			case <-work:
			}
			ended.Done()
		}()
	}
	ready.Wait()
	cancel()
	ended.Wait()
	return cancelled.Load()
}

func contextWorkload() {
	ns, check := measure(contextTreeRound, 1+contextDegree+contextDegree*contextDegree)
	report("context.tree", ns, "ns", fmt.Sprint(check))
	ns, check = measure(contextWaitRound, contextWaiters)
	report("context.wait", ns, "ns", fmt.Sprint(check))
}
