// Go values from their description in JSON, for the programs that compare with Go.
package main

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

type Pair struct {
	Name string
	Age  int
}

type Holder struct {
	Any    any
	Items  []string
	Labels map[string]string
	Inner  Pair
	Next   *Pair
}

type Named struct {
	Name string
}

func (n Named) String() string { return "<" + n.Name + ">" }

// A value: its type, and what it is made of.
type node struct {
	Type  string
	Text  string
	Nil   bool
	Items []node
	Keys  []string
}

func build(n node) any {
	switch n.Type {
	case "nil":
		return nil
	case "bool":
		return n.Text == "true"
	case "int", "int32", "int64":
		return signed(n)
	case "uint", "uint8", "uint32", "uint64":
		return unsigned(n)
	case "float64":
		return float(n.Text)
	case "complex128":
		real, imaginary, _ := strings.Cut(n.Text, " ")
		return complex(float(real), float(imaginary))
	case "string":
		return unhex(n.Text)
	case "main.Pair":
		return Pair{build(n.Items[0]).(string), build(n.Items[1]).(int)}
	case "main.Named":
		return Named{build(n.Items[0]).(string)}
	case "main.Holder":
		return Holder{
			build(n.Items[0]), build(n.Items[1]).([]string), build(n.Items[2]).(map[string]string),
			build(n.Items[3]).(Pair), build(n.Items[4]).(*Pair),
		}
	}
	return compound(n)
}

func compound(n node) any {
	switch n.Type {
	case "[]string":
		return list[string](n)
	case "[]int":
		return list[int](n)
	case "[]float64":
		return list[float64](n)
	case "[]uint8":
		return list[uint8](n)
	case "[]interface {}":
		return list[any](n)
	case "[]main.Pair":
		return list[Pair](n)
	case "[]*main.Named":
		return list[*Named](n)
	case "[][]uint8":
		return list[[]uint8](n)
	case "map[string]string":
		return dictionary[string](n)
	case "map[string]int":
		return dictionary[int](n)
	case "map[string]interface {}":
		return dictionary[any](n)
	case "*int":
		return pointer[int](n)
	case "*main.Pair":
		return pointer[Pair](n)
	case "*main.Named":
		return pointer[Named](n)
	case "*main.Holder":
		return pointer[Holder](n)
	case "*[]string":
		return pointer[[]string](n)
	case "*map[string]interface {}":
		return pointer[map[string]any](n)
	}
	panic("unknown type " + n.Type)
}

func list[T any](n node) any {
	if n.Nil {
		return []T(nil)
	}
	items := make([]T, 0, len(n.Items))
	for _, item := range n.Items {
		value, _ := build(item).(T)
		items = append(items, value)
	}
	return items
}

func dictionary[T any](n node) any {
	if n.Nil {
		return map[string]T(nil)
	}
	entries := map[string]T{}
	for i, key := range n.Keys {
		entries[unhex(key)], _ = build(n.Items[i]).(T)
	}
	return entries
}

func pointer[T any](n node) any {
	if n.Nil {
		return (*T)(nil)
	}
	value := build(n.Items[0]).(T)
	return &value
}

func signed(n node) any {
	number, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil {
		panic(err)
	}
	switch n.Type {
	case "int32":
		return int32(number)
	case "int64":
		return number
	}
	return int(number)
}

func unsigned(n node) any {
	number, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil {
		panic(err)
	}
	switch n.Type {
	case "uint8":
		return uint8(number)
	case "uint32":
		return uint32(number)
	case "uint64":
		return number
	}
	return uint(number)
}

func float(text string) float64 {
	bits, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return math.Float64frombits(bits)
}

func unhex(text string) string {
	bytes, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return string(bytes)
}
