package main

import (
	"fmt"
	"sync"
	"syscall"
)

const fadvDontneed = 4

// The readers of fileread, of a file that is dropped from the page cache before each round.
func diskread() {
	f := filereadOpen()
	if err := f.Sync(); err != nil { // what is not written yet cannot be dropped
		fail(err.Error())
	}
	readers := make([]filereadReader, filereadReaders)
	for i := range readers {
		readers[i].random = uint64(i+1) * 0x9e3779b97f4a7c15
	}
	ns, check := measure(func() (right uint64) {
		var wg sync.WaitGroup
		syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, fadvDontneed, 0, 0)
		wg.Add(len(readers))
		for i := range readers {
			readers[i].right = 0
			go readers[i].read(f, &wg)
		}
		wg.Wait()
		for i := range readers {
			right += readers[i].right
		}
		return right
	}, filereadReaders*filereadReads)
	report("diskread", ns, "ns", fmt.Sprintf("%d right", check))
}
