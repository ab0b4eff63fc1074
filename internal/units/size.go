package units

import (
	"errors"
	"strconv"
	"strings"
)

// A Size is a number of bytes above 0, written as 4096, 64KiB, 256MiB or 1GiB. It serves as a flag's value.
type Size int

// sizeUnits are tried in this order, so that what is written is short.
var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// Set reads a size. Small letters do, too.
func (s *Size) Set(text string) error {
	number, unit := text, Size(1)
	for _, u := range sizeUnits {
		if n := len(text) - len(u.name); n > 0 && strings.EqualFold(text[n:], u.name) {
			number, unit = text[:n], u.size
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n <= 0 || n*int(unit)/int(unit) != n {
		return errors.New("want a number of bytes above 0, such as 4096, 64KiB, 256MiB or 1GiB")
	}
	*s = Size(n) * unit
	return nil
}

// String writes the size exactly, as Set reads it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.size == 0 {
			return strconv.Itoa(int(s/u.size)) + u.name
		}
	}
	return strconv.Itoa(int(s))
}

// Type is the word for such a value in a command's help.
func (*Size) Type() string { return "size" }

// Bytes prints three digits of a number of bytes in the unit that suits: 0B, 87B, 1.50KiB, 12.3MiB.
func Bytes(n uint64) string {
	for _, u := range sizeUnits {
		if v := float64(n) / float64(u.size); v >= 0.9995 {
			return digits(v, false) + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}
