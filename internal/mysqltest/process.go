package mysqltest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// A Process is a child that dies with us.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // what Wait of the command returned; set before done is closed
}

// Spawn starts cmd. The child is killed when this process ends, however it ends (on Linux).
func Spawn(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run keeps its thread until the child has ended: the kernel signals the child when the thread that started it
// dies, and the runtime may end a thread that another goroutine had locked.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the child's end and says how it ended, as exec.Cmd's Wait does.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig to the child. An ended child is no error.
func (p *Process) Signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

// Kill ends the child without asking it, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
