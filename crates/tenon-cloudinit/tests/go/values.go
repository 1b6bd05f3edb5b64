package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Sample has a field of every kind that template data has.
type Sample struct {
	Name   string
	Tags   []string
	Count  int64             `yaml:"count,omitempty"`
	On     *bool             `yaml:"on,omitempty"`
	Limit  *int32            `yaml:"limit,omitempty"`
	Extra  map[string]string `yaml:"extra,omitempty"`
	Ratio  float64           `yaml:"ratio,omitempty"`
	Inner  Inner             `yaml:"inner,omitempty"`
	Inners []Inner           `yaml:"inners,omitempty"`
	Next   *Inner
	Any    any `yaml:"any,omitempty"`
}

// Inner is a struct inside another.
type Inner struct {
	Key  string `yaml:"key,omitempty"`
	Flag bool   `yaml:"flag,omitempty"`
	Size uint32
}

// types are the names that a written value may begin with. A value is null, true, false, a string, or an object of one
// such name: numbers are written as decimal strings, floats as the number of their bits, strings that are no UTF-8 as
// {"bytes": base64}, maps as lists of pairs, structs as lists of their fields.
var types = map[string]reflect.Type{
	"bytes":     reflect.TypeFor[string](),
	"int":       reflect.TypeFor[int](),
	"int32":     reflect.TypeFor[int32](),
	"int64":     reflect.TypeFor[int64](),
	"uint8":     reflect.TypeFor[uint8](),
	"uint32":    reflect.TypeFor[uint32](),
	"uint64":    reflect.TypeFor[uint64](),
	"float":     reflect.TypeFor[float64](),
	"strings":   reflect.TypeFor[[]string](),
	"list":      reflect.TypeFor[[]any](),
	"inners":    reflect.TypeFor[[]Inner](),
	"stringMap": reflect.TypeFor[map[string]string](),
	"map":       reflect.TypeFor[map[string]any](),
	"sample":    reflect.TypeFor[Sample](),
	"inner":     reflect.TypeFor[Inner](),
	"pInner":    reflect.TypeFor[*Inner](),
	"pBool":     reflect.TypeFor[*bool](),
	"pInt32":    reflect.TypeFor[*int32](),
}

// decode reads a value for a place of that type.
func decode(raw json.RawMessage, place reflect.Type) reflect.Value {
	value := reflect.New(place).Elem()
	if given := read(raw); given.IsValid() {
		value.Set(given)
	}
	return value
}

func read(raw json.RawMessage) reflect.Value {
	var plain any
	must(json.Unmarshal(raw, &plain))
	switch plain := plain.(type) {
	case nil:
		return reflect.Value{}
	case bool, string:
		return reflect.ValueOf(plain)
	}
	var object map[string]json.RawMessage
	must(json.Unmarshal(raw, &object))
	for name, inside := range object {
		return build(types[name], inside)
	}
	panic("an empty object")
}

func build(of reflect.Type, raw json.RawMessage) reflect.Value {
	value := reflect.New(of).Elem()
	if string(raw) == "null" {
		return value
	}
	switch of.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(of.Elem()))
		value.Elem().Set(decode(raw, of.Elem()))
	case reflect.Slice:
		items := parts(raw)
		value.Set(reflect.MakeSlice(of, len(items), len(items)))
		for i, item := range items {
			value.Index(i).Set(decode(item, of.Elem()))
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(of))
		for _, pair := range parts(raw) {
			entry := parts(pair)
			value.SetMapIndex(decode(entry[0], of.Key()), decode(entry[1], of.Elem()))
		}
	case reflect.Struct:
		for i, field := range parts(raw) {
			value.Field(i).Set(decode(field, of.Field(i).Type))
		}
	default:
		scalar(value, raw)
	}
	return value
}

func scalar(value reflect.Value, raw json.RawMessage) {
	var text string
	must(json.Unmarshal(raw, &text))
	switch value.Kind() {
	case reflect.String:
		bytes, err := base64.StdEncoding.DecodeString(text)
		must(err)
		value.SetString(string(bytes))
	case reflect.Int, reflect.Int32, reflect.Int64:
		number, err := strconv.ParseInt(text, 10, 64)
		must(err)
		value.SetInt(number)
	case reflect.Float64:
		bits, err := strconv.ParseUint(text, 10, 64)
		must(err)
		value.SetFloat(math.Float64frombits(bits))
	default:
		number, err := strconv.ParseUint(text, 10, 64)
		must(err)
		value.SetUint(number)
	}
}

func parts(raw json.RawMessage) (items []json.RawMessage) {
	must(json.Unmarshal(raw, &items))
	return items
}

// encode writes a result.
func encode(value reflect.Value) any {
	switch result := value.Interface().(type) {
	case bool:
		return result
	case string:
		if utf8.ValidString(result) {
			return result
		}
		return map[string]any{"bytes": base64.StdEncoding.EncodeToString([]byte(result))}
	case []string:
		items := make([]any, len(result))
		for i, item := range result {
			items[i] = encode(reflect.ValueOf(item))
		}
		return map[string]any{"strings": items}
	}
	panic(fmt.Sprintf("cannot write a %s", value.Type()))
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("cannot read a case: %v", err))
	}
}
