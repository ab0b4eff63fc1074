package synth_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"

	"redrive/synth"
)

const draws = 100000

// share is the part of draws of 1…n that lies between low and high.
func share(d synth.Distribution, n, low, high int) float64 {
	r := synth.NewRandom(7, "test", 0, d)
	in := 0
	for range draws {
		if x := r.Draw(1, n); x >= low && x <= high {
			in++
		}
	}
	return float64(in) / draws
}

// normal is the share of a normal distribution below x.
func normal(x, mean, deviation float64) float64 {
	return 0.5 * (1 + math.Erf((x-mean)/(deviation*math.Sqrt2)))
}

func TestDistributions(t *testing.T) {
	const n = 100000
	bell := func(low, high, width float64) float64 { // the mean of 12 even draws is nearly normal: σ = width/12
		return normal(high, width/2, width/12) - normal(low, width/2, width/12)
	}
	tests := []struct {
		name      string
		d         synth.Distribution
		low, high int
		want      float64
	}{
		{"uniform, a tenth", synth.Uniform, 1, n / 10, 0.1},
		{"uniform, upper half", synth.Uniform, n/2 + 1, n, 0.5},
		{"gaussian, within one σ", synth.Gaussian, n/2 - n/12, n/2 + n/12, bell(n/2-n/12, n/2+n/12, n)},
		{"gaussian, within two σ", synth.Gaussian, n/2 - n/6, n/2 + n/6, bell(n/2-n/6, n/2+n/6, n)},
		{"pareto, a fifth gets four fifths", synth.Pareto, 1, n / 5, 0.8},
		{"pareto, a fifth of the fifth", synth.Pareto, 1, n / 25, 0.64},
		// Three quarters go to the hot band, whose lower quarter is never drawn; of the other quarter, bell-shaped, a few
		// stray into it.
		{"special, hot band", synth.Special, 49751, 50501, 0.75 + 0.25*bell(49751, 50501, n)},
		{"special, below the hot band", synth.Special, 1, 49750, 0.25 * bell(0, 49751, n)},
		{"special, lower quarter of the range", synth.Special, 1, n / 4, 0.25 * bell(0, n/4, n)},
	}
	for _, test := range tests {
		deviation := math.Sqrt(test.want * (1 - test.want) / draws)
		if got := share(test.d, n, test.low, test.high); math.Abs(got-test.want) > 5*deviation+0.0005 {
			t.Errorf("%s: share %.4f, want %.4f ± %.4f", test.name, got, test.want, 5*deviation+0.0005)
		}
	}
}

func TestDrawsStayInRange(t *testing.T) {
	for _, d := range []synth.Distribution{synth.Special, synth.Uniform, synth.Gaussian, synth.Pareto} {
		for _, n := range []int{1, 2, 10, 100} {
			r := synth.NewRandom(1, "test", 0, d)
			for range 20000 {
				if x := r.Draw(1, n); x < 1 || x > n {
					t.Fatalf("%s draws %d from 1…%d", d, x, n)
				}
			}
		}
	}
}

func TestStreams(t *testing.T) {
	first := func(seed uint64, purpose string, number int) string {
		r := synth.NewRandom(seed, purpose, number, synth.Uniform)
		return fmt.Sprint(r.Uint64(), r.Uint64())
	}
	if a, b := first(5, "run", 1), first(5, "run", 1); a != b {
		t.Errorf("the same stream twice: %s and %s", a, b)
	}
	seen := map[string]string{}
	for _, seed := range []uint64{1, 2, 51} {
		for _, purpose := range []string{"run", "prepare"} {
			for number := range 3 {
				name := fmt.Sprint(seed, purpose, number)
				value := first(seed, purpose, number)
				if other, ok := seen[value]; ok {
					t.Errorf("streams %s and %s are the same", name, other)
				}
				seen[value] = name
			}
		}
	}
}

func TestAppendDigits(t *testing.T) {
	r := synth.NewRandom(1, "test", 0, synth.Special)
	forms := map[int]*regexp.Regexp{
		10: regexp.MustCompile(`^(\d{11}-){9}\d{11}$`),
		5:  regexp.MustCompile(`^(\d{11}-){4}\d{11}$`),
	}
	counts := map[byte]int{}
	for groups, form := range forms {
		for range 1000 {
			text := r.AppendDigits(nil, groups)
			if !form.Match(text) {
				t.Fatalf("%d groups: %s", groups, text)
			}
			for _, b := range text {
				counts[b]++
			}
		}
	}
	for digit := byte('0'); digit <= '9'; digit++ { // 165,000 digits in all, σ of each count 122
		if n := counts[digit]; n < 16500-610 || n > 16500+610 {
			t.Errorf("digit %c came %d times, want about 16500", digit, n)
		}
	}
}

func TestParseDistribution(t *testing.T) {
	for _, name := range []string{"special", "uniform", "gaussian", "pareto"} {
		if d, err := synth.ParseDistribution(name); err != nil || d.String() != name {
			t.Errorf("ParseDistribution(%s) = %v, %v", name, d, err)
		}
	}
	if _, err := synth.ParseDistribution("zipfian"); err == nil {
		t.Error("ParseDistribution(zipfian) succeeds")
	}
}
