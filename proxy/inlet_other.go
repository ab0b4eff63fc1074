//go:build !unix

package proxy

// canTry says that a socket can be read from without waiting.
const canTry = false

func (in *inlet) tryRead(uintptr) bool { return true }
