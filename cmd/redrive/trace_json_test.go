package main

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every field of the JSON is described in docs/trace.md.
func TestTraceJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []any{statementJSON{}, outcomeJSON{}, sessionStartJSON{}, preparedJSON{}, sessionEndJSON{}, gapJSON{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(object)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !regexp.MustCompile(`\b`+name+`\b`).Match(doc) {
				t.Errorf("docs/trace.md does not describe %s of %T", name, object)
			}
		}
	}
}
