package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/apparentlymart/go-cidr/cidr"
	"go.yaml.in/yaml/v3"
)

// functions name what is asked for. Most are the standard library's own.
var functions = map[string]any{
	"toJson":       func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
	"toPrettyJson": func(v any) (string, error) { text, err := json.MarshalIndent(v, "", "  "); return string(text), err },
	"toYaml":       func(v any) (string, error) { return toYAML(v, 4) },
	"toYamlPretty": func(v any) (string, error) { return toYAML(v, 2) },

	"upper":      strings.ToUpper,
	"lower":      strings.ToLower,
	"trim":       strings.TrimSpace,
	"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
	"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
	"contains":   func(part, s string) bool { return strings.Contains(s, part) },
	"hasPrefix":  func(part, s string) bool { return strings.HasPrefix(s, part) },
	"hasSuffix":  func(part, s string) bool { return strings.HasSuffix(s, part) },
	"replace":    func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
	"split":      strings.Split,
	"join":       strings.Join,
	"indent":     indent,
	"nindent":    func(n int, s string) string { return "\n" + indent(n, s) },
	"quote":      func(s string) string { return strconv.Quote(s) },
	"b64enc":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"b64dec":     func(s string) (string, error) { b, err := base64.StdEncoding.DecodeString(s); return string(b), err },

	"regexFind":       regexFind,
	"regexFindString": regexFindString,
	"regexReplaceAll": regexReplaceAll,
	"cidrhost":        cidrHost,
	"cidrslaac":       cidrSLAAC,
}

func toYAML(v any, indent int) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indent)
	err := encoder.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func indent(n int, s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.Repeat(" ", n) + lines[i]
	}
	return strings.Join(lines, "\n")
}

func regexFind(pattern, s string) (string, error) { return regexFindString(pattern, s, 0) }

func regexFindString(pattern, s string, n int) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	if groups := re.FindStringSubmatch(s); n < len(groups) {
		return groups[n], nil
	}
	return "", nil
}

func regexReplaceAll(pattern, s, with string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	return re.ReplaceAllString(s, with), nil
}

func cidrHost(network string, numbers ...int) (string, error) {
	address, parsed, err := net.ParseCIDR(network)
	if err != nil || len(numbers) == 0 {
		return address.String(), err
	}
	address, err = cidr.Host(parsed, numbers[0])
	return address.String(), err
}

// cidrSLAAC puts the modified EUI-64 into every whole byte that the prefix leaves free; free bytes before it are zero.
func cidrSLAAC(mac, network string) (string, error) {
	_, parsed, err := net.ParseCIDR(network)
	if err != nil {
		return "", err
	}
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		return "", err
	}
	prefix, bits := parsed.Mask.Size()
	if bits != 128 || prefix > 112 || len(hardware) < 6 {
		return "", errors.New("no such address")
	}
	host := append([]byte{hardware[0] ^ 2, hardware[1], hardware[2], 0xff, 0xfe}, hardware[3:6]...)
	for i := prefix / 8; i < 16; i++ {
		parsed.IP[i] = append(bytes.Clone(parsed.IP[:8]), host...)[i]
	}
	return parsed.String(), nil
}
