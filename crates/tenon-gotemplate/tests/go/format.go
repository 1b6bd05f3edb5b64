// Prints values as Go does, so that a test can compare. Reads cases as JSON, writes one line of hexadecimal digits for
// each.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
)

type testCase struct {
	Call   string
	Format string
	Values []node
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	for _, c := range cases {
		fmt.Fprintln(out, hex.EncodeToString([]byte(c.run())))
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
}

func (c testCase) run() string {
	var values []any
	for _, value := range c.Values {
		values = append(values, build(value))
	}
	switch c.Call {
	case "printf":
		return fmt.Sprintf(unhex(c.Format), values...)
	case "print":
		return fmt.Sprint(values...)
	case "println":
		return fmt.Sprintln(values...)
	case "quote":
		return strconv.Quote(unhex(c.Format))
	case "float":
		return strconv.FormatFloat(values[0].(float64), 'g', -1, 64)
	case "unicode":
		return unicode.Version
	case "printable":
		return changes(strconv.IsPrint)
	case "letters":
		return changes(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	}
	panic("unknown call " + c.Call)
}

// Where runs of such characters begin and end, in turn.
func changes(is func(rune) bool) string {
	var changes []string
	inside := false
	for r := rune(0); r <= unicode.MaxRune+1; r++ {
		if is(r) != inside {
			inside = !inside
			changes = append(changes, strconv.Itoa(int(r)))
		}
	}
	return strings.Join(changes, " ")
}
