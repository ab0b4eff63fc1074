package synth

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// A Distribution says which rows are drawn how often.
type Distribution byte

const (
	Special  Distribution = iota // most draws from a hot range in the middle
	Uniform                      // all rows alike
	Gaussian                     // a bell around the middle
	Pareto                       // low ids hottest: a fifth of them gets four fifths of the draws
)

var distributions = []string{"special", "uniform", "gaussian", "pareto"}

// ParseDistribution reads one of special, uniform, gaussian, pareto.
func ParseDistribution(s string) (Distribution, error) {
	for i, name := range distributions {
		if s == name {
			return Distribution(i), nil
		}
	}
	return 0, fmt.Errorf("invalid random numbers distribution: %s", s)
}

// String is the distribution's name.
func (d Distribution) String() string { return distributions[d] }

// sysbench's defaults of what shapes the distributions.
const (
	iterations = 12 // summands of gaussian and special
	hotPercent = 1  // size of special's hot range
	hotDraws   = 75 // percent of special's draws that go there
	paretoH    = 0.2
)

var paretoPower = math.Log(paretoH) / math.Log(1-paretoH)

// A Random is one stream of random numbers. It belongs to one goroutine.
type Random struct {
	*rand.Rand
	distribution Distribution
}

// NewRandom is the stream that belongs to a seed, a purpose and a number: the thread's, or the table's. Streams of
// different threads or purposes have nothing to do with one another, and none depends on how many there are.
func NewRandom(seed uint64, purpose string, number int, d Distribution) *Random {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", seed, purpose, number))
	source := rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:]))
	return &Random{rand.New(source), d}
}

// Draw is a number between a and b, both included, by the stream's distribution.
func (r *Random) Draw(a, b int) int {
	switch r.distribution {
	case Special:
		return r.special(a, b)
	case Gaussian:
		return a + int(r.bell(float64(b-a+1)))
	case Pareto:
		return a + int(float64(b-a+1)*math.Pow(r.Float64(), paretoPower))
	}
	return r.Even(a, b)
}

// Even is a number between a and b, both included, all alike.
func (r *Random) Even(a, b int) int { return a + r.IntN(b-a+1) }

// bell is the mean of several even draws below n.
func (r *Random) bell(n float64) float64 {
	sum := 0.0
	for range iterations {
		sum += r.Float64()
	}
	return n * sum / iterations
}

// special draws from a bell over all, or from the hot range. The choice and the place in the hot range are one draw, as
// sysbench does it: so the hot range is only the upper part of what it is meant to be.
func (r *Random) special(a, b int) int {
	t := float64(b - a)
	u := r.Float64()
	if u < (100-hotDraws)/100.0 {
		return a + int(r.bell(t))
	}
	width := t*hotPercent/100 + 1
	first := (b-a)/2 - (b-a)*hotPercent/200
	return a + int(u*width+float64(first))
}

const group = 11 // digits of one group of c and pad

// AppendDigits appends groups of eleven random digits joined by dashes: c has ten, pad five.
func (r *Random) AppendDigits(dst []byte, groups int) []byte {
	for i := range groups {
		if i > 0 {
			dst = append(dst, '-')
		}
		var digits [group]byte
		n := r.Uint64N(1e11)
		for j := group - 1; j >= 0; j-- {
			digits[j] = byte('0' + n%10)
			n /= 10
		}
		dst = append(dst, digits[:]...)
	}
	return dst
}
