// Runs templates as Go does, so that a test can compare. Reads cases as JSON, writes one line of JSON for each.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"
)

type templateCase struct {
	Source string
	Option string
	Left   string
	Right  string
	Data   int
}

type input struct {
	Data  []node
	Cases []templateCase
}

type outcome struct {
	Stage string
	Text  string
}

func main() {
	var all input
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for _, c := range all.Cases {
		if err := lines.Encode(c.run(all.Data[c.Data])); err != nil {
			panic(err)
		}
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
}

func (c templateCase) run(data node) (result outcome) {
	defer func() {
		// Go gives up without an error for a few templates.
		if r := recover(); r != nil {
			result = outcome{"panic", fmt.Sprint(r)}
		}
	}()
	t := template.New("t").Funcs(functions).Option(c.Option).Delims(c.Left, c.Right)
	if _, err := t.Parse(unhex(c.Source)); err != nil {
		return outcome{"parse", err.Error()}
	}
	var out bytes.Buffer
	// Functions may change the data, so that every case has its own.
	if err := t.Execute(&out, build(data)); err != nil {
		return outcome{"exec", err.Error()}
	}
	return outcome{"ok", hex.EncodeToString(out.Bytes())}
}

var functions = template.FuncMap{
	"upper":   func(text string) (string, error) { return strings.ToUpper(text), plainText(text) },
	"fail":    func(text string) (string, error) { return "", errors.New(text) },
	"add":     add,
	"dec":     func(n int) int { return n - 1 },
	"default": defaultTo,
	"dict":    dict,
	"list":    func(values ...any) []any { return values },
	"toJson":  toJSON,
	"quote":   quote,
	"ternary": ternary,
	"nindent": nindent,
	"get":     get,
	"hasKey":  func(m map[string]any, key string) bool { _, ok := m[key]; return ok },
	"set":     set,
	"join":    join,
	"pick":    pick,
	"retnil":  func() any { return nil },
	// With parameters and results of other types than the recorded cases have.
	"strings":  func(texts ...string) []string { return texts },
	"count":    func(texts []string) int { return len(texts) },
	"labels":   func(labels map[string]string) int { return len(labels) },
	"older":    func(pair Pair) Pair { return Pair{pair.Name, pair.Age + 1} },
	"named":    func(name string) (Named, error) { return Named{name}, plainText(name) },
	"nilpair":  func() *Pair { return nil },
	"uint32":   func(n uint32) uint32 { return n },
	"uint8":    func(n uint8) uint8 { return n },
	"int32":    func(n int32) int32 { return n },
	"int64":    func(n int64) int64 { return n },
	"float":    func(n float64) float64 { return n },
	"complex":  func(n complex128) complex128 { return n },
	"flip":     func(b bool) bool { return !b },
	"tail":     func(first string, rest ...int) []int { return rest },
	"pp":       func() *Pair { return &Pair{"bob", 25} },
	"hp":       holder,
	"sp":       func() *[]string { return &[]string{"p", "q"} },
	"mp":       func() *map[string]any { return &map[string]any{"a": 1, "k": nil} },
	"sameList": func(values []any) []any { return values },
}

func holder() *Holder {
	return &Holder{5, []string{"i", "j"}, map[string]string{"app": "web", "tier": ""}, Pair{"in", 4}, &Pair{"next", 9}}
}

// What the functions of both sides treat alike.
func plainText(text string) error {
	if !utf8.ValidString(text) || strings.ContainsAny(text, "\u2028\u2029") {
		return errors.New("not a plain text")
	}
	return nil
}

func add(numbers ...int) int {
	sum := 0
	for _, number := range numbers {
		sum += number
	}
	return sum
}

func defaultTo(other, value any) any {
	if truth, _ := template.IsTrue(value); !truth {
		return other
	}
	return value
}

func dict(values ...any) (map[string]any, error) {
	entries := map[string]any{}
	for i := 0; i < len(values); i += 2 {
		if i+1 == len(values) {
			return nil, errors.New("odd number of arguments")
		}
		entries[fmt.Sprint(values[i])] = values[i+1]
	}
	return entries, nil
}

func toJSON(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if !isPlain(value) {
		return "", errors.New("not a plain value")
	}
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Whether it is made of what JSON has.
func isPlain(value any) bool {
	switch value := value.(type) {
	case nil, bool, int:
		return true
	case string:
		return plainText(value) == nil
	case float64:
		return value == 0 || math.Abs(value) > 1e-5 && math.Abs(value) < 1e15
	case []any:
		return value != nil && !slices.ContainsFunc(value, func(item any) bool { return !isPlain(item) })
	case map[string]any:
		for key, item := range value {
			if !isPlain(item) || plainText(key) != nil {
				return false
			}
		}
		return value != nil
	}
	return false
}

func quote(values ...any) string {
	var quoted []string
	for _, value := range values {
		if value != nil {
			quoted = append(quoted, strconv.Quote(fmt.Sprint(value)))
		}
	}
	return strings.Join(quoted, " ")
}

func ternary(yes, no any, condition bool) any {
	if condition {
		return yes
	}
	return no
}

func nindent(spaces int, text string) (string, error) {
	if spaces < 0 || spaces > 100 {
		return "", errors.New("too many spaces")
	}
	pad := strings.Repeat(" ", spaces)
	return "\n" + pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func get(m map[string]any, key string) any {
	if value, ok := m[key]; ok {
		return value
	}
	return ""
}

// A map in itself could not be printed.
func set(m map[string]any, key string, value any) (map[string]any, error) {
	switch value.(type) {
	case nil, bool, int, float64, string:
		m[key] = value
		return m, nil
	}
	return nil, errors.New("not a flat value")
}

func join(separator string, items []any) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, fmt.Sprint(item))
	}
	return strings.Join(texts, separator)
}

func pick(m map[string]any) any {
	var smallest any
	for key := range m {
		if smallest == nil || key < smallest.(string) {
			smallest = key
		}
	}
	return smallest
}
