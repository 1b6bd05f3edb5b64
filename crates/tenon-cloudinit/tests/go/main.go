// Answers what real Go gives for the functions that templates may call.
//
// Standard input holds a JSON array of cases, {"function": name, "arguments": [value, …]}; standard output gets an array
// of the same cases, each with its "answer". values.go says how values are written. A file of answers is a file of cases
// as well: `go run . <recorded.json >new.json` asks again. `go run . render` runs whole templates instead (render.go).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
)

// Case is one call.
type Case struct {
	Function  string            `json:"function"`
	Arguments []json.RawMessage `json:"arguments"`
	Answer    any               `json:"answer"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "render" {
		if err := renderAll(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, "cannot read the cases:", err)
		os.Exit(1)
	}
	for i := range cases {
		cases[i].Answer = answer(cases[i])
	}
	// One case a line, so that a change shows what changed.
	lines := make([]string, len(cases))
	for i, c := range cases {
		line, err := json.Marshal(c)
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot write the answers:", err)
			os.Exit(1)
		}
		lines[i] = string(line)
	}
	fmt.Printf("[\n%s\n]\n", strings.Join(lines, ",\n"))
}

// answer calls the function. A panic is an error, as it is in a template.
func answer(c Case) (result any) {
	defer func() {
		if problem := recover(); problem != nil {
			result = map[string]any{"error": fmt.Sprint(problem)}
		}
	}()
	function := reflect.ValueOf(functions[c.Function])
	arguments := make([]reflect.Value, len(c.Arguments))
	for i, raw := range c.Arguments {
		arguments[i] = decode(raw, parameter(function.Type(), i))
	}
	results := function.Call(arguments)
	if len(results) == 2 && !results[1].IsNil() {
		panic(results[1].Interface())
	}
	return encode(results[0])
}

// parameter is the type of argument i.
func parameter(function reflect.Type, i int) reflect.Type {
	last := function.NumIn() - 1
	if function.IsVariadic() && i >= last {
		return function.In(last).Elem()
	}
	return function.In(i)
}
