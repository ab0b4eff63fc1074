package units_test

import (
	"testing"

	"redrive/internal/units"
)

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		text    string
		want    units.Size
		written string
	}{
		{"1", 1, "1"},
		{"1000", 1000, "1000"},
		{"1024", 1024, "1KiB"},
		{"64KiB", 65536, "64KiB"},
		{"1536mib", 1610612736, "1536MiB"},
		{"2048MiB", 2147483648, "2GiB"},
		{"1GiB", 1073741824, "1GiB"},
	} {
		var got units.Size
		if err := got.Set(tt.text); err != nil || got != tt.want || got.String() != tt.written {
			t.Errorf("Set(%q) = %d, written %s, %v, want %d, written %s", tt.text, got, got, err, tt.want, tt.written)
		}
	}
	for _, text := range []string{"", "0", "-1", "-1KiB", "1.5MiB", "MiB", "12MB", "1TiB", "1 KiB", "9223372036854775808", "9007199254740992GiB", "17179869185GiB"} {
		size := units.Size(7)
		if err := size.Set(text); err == nil || size != 7 {
			t.Errorf("Set(%q) = %d, %v, want an error and nothing changed", text, size, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 87: "87B", 1023: "1023B", 1024: "1.00KiB", 1536: "1.50KiB", 256 << 20: "256MiB", 12_900_000: "12.3MiB", 5 << 40: "5120GiB"} {
		if got := units.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}
