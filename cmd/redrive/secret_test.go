package main

import (
	"slices"
	"strings"
	"testing"
)

func TestHideSecrets(t *testing.T) {
	tests := []struct{ args, shown string }{
		{"synth --mysql-password=abc run", "synth --mysql-password=xxx run"},
		{"synth --mysql_password=a=c run", "synth --mysql_password=xxx run"},
		{"replay --password=abc --user=u", "replay --password=xxx --user=u"},
		{"replay --password abc --user u", "replay --password xxx --user u"},
		{"replay --user u --password", "replay --user u --password"},
		{"synth --mysql-password oltp_read_write", "synth --mysql-password oltp_read_write"},
		{"synth --mysql-password= --mysql-user=password", "synth --mysql-password= --mysql-user=password"},
	}
	for _, test := range tests {
		args := strings.Fields(strings.Clone(test.args)) // a literal's memory cannot be written to
		got := hideSecrets(args)
		if want := strings.Fields(test.args); !slices.Equal(got, want) {
			t.Errorf("%s: the program gets %q", test.args, got)
		}
		if shown := strings.Join(args, " "); shown != test.shown {
			t.Errorf("%s: ps shows %s, want %s", test.args, shown, test.shown)
		}
	}
}
