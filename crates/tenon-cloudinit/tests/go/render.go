package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// renderAll answers a JSON array of renderings with their outputs.
func renderAll() error {
	var all []Rendering
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		return fmt.Errorf("cannot read the templates: %w", err)
	}
	for i := range all {
		all[i].render()
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// templateFunctions are all that templates call: those of functions.go, and those that look at values of any type.
var templateFunctions = func() map[string]any {
	all := maps.Clone(functions)
	maps.Copy(all, map[string]any{
		"empty": isEmpty,
		"default": func(usual any, given ...any) any {
			if len(given) > 0 && !isEmpty(given[0]) {
				return given[0]
			}
			return usual
		},
		"coalesce": firstFilled,
		"ternary":  func(yes, no any, condition bool) any { return map[bool]any{true: yes, false: no}[condition] },
		"quote":    quoteAll,
		"get":      func(m map[string]string, key string) string { return m[key] },
		"hasKey":   func(m map[string]any, key string) bool { _, has := m[key]; return has },
		"hasTag":   func(tags []string, tag string) bool { return tag != "" && slices.Contains(tags, tag) },
		"getValue": getValue,
	})
	return all
}()

func isEmpty(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.IsZero()
}

// firstFilled is the first value that is not empty.
func firstFilled(values ...any) any {
	for _, v := range values {
		if !isEmpty(v) {
			return v
		}
	}
	return nil
}

func quoteAll(values ...any) string {
	var quoted []string
	for _, v := range values {
		if v != nil {
			quoted = append(quoted, strconv.Quote(fmt.Sprint(v)))
		}
	}
	return strings.Join(quoted, " ")
}

func getValue(pairs, key string) (string, error) {
	for pair := range strings.SplitSeq(pairs, ";") {
		if parts := strings.Split(pair, "="); parts[0] == key {
			if len(parts) < 2 {
				return "", errors.New("no value")
			}
			return parts[1], nil
		}
	}
	return "", nil
}

// Rendering is one template with what it sees.
type Rendering struct {
	Template string  `json:"template"`
	File     string  `json:"file"`
	Context  Context `json:"context"`
	Output   string  `json:"output"`
	Error    string  `json:"error"`
}

// render runs the template with the part of the context that its file sees.
func (r *Rendering) render() {
	var data any = r.Context
	switch r.File {
	case "meta-data", "vendor-data":
		data = r.Context.Metadata
	case "network-config":
		data = r.Context.Network
	}
	parsed, err := template.New("cloudinit").Funcs(templateFunctions).Parse(r.Template)
	if err != nil {
		r.Error = "parse: " + err.Error()
		return
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		r.Error = "exec: " + err.Error()
		return
	}
	r.Output = out.String()
}

// Context is what user-data sees. Names, types and YAML keys are those that templates were written for.
type Context struct {
	Metadata   Metadata
	Network    Network
	Resources  Resources
	Kubernetes Kubernetes
	Values     map[string]string
}

type Metadata struct {
	Hostname     string
	InstanceID   string
	InstanceUUID string
	InstanceType string
	ProviderID   string
	Region       string
	Zone         string
	Tags         []string
	NodeClass    string
}

type Network struct {
	Interfaces    []Interface
	SearchDomains []string `yaml:"search_domains,omitempty"`
	NameServers   []string `yaml:"name_servers,omitempty"`
}

type Interface struct {
	Name         string   `yaml:"name"`
	MacAddr      string   `yaml:"mac_address,omitempty"`
	DHCPv4       bool     `yaml:"dhcp4,omitempty"`
	DHCPv6       bool     `yaml:"dhcp6,omitempty"`
	SLAAC        bool     `yaml:"slaac,omitempty"`
	Address4     []string `yaml:"addresses4,omitempty"`
	Address6     []string `yaml:"addresses6,omitempty"`
	Gateway4     string   `yaml:"gateway4,omitempty"`
	Gateway6     string   `yaml:"gateway6,omitempty"`
	MTU          uint32   `yaml:"mtu,omitempty"`
	NodeAddress4 string   `yaml:"node_address4,omitempty"`
	NodeAddress6 string   `yaml:"node_address6,omitempty"`
	NodeGateway4 string   `yaml:"node_gateway4,omitempty"`
	NodeGateway6 string   `yaml:"node_gateway6,omitempty"`
}

type Resources struct {
	CPU          int64 `yaml:"cpu,omitempty"`
	Memory       int64 `yaml:"memory,omitempty"`
	Hugepages1Gi int   `yaml:"hugepages1Gi,omitempty"`
	Hugepages2Mi int   `yaml:"hugepages2Mi,omitempty"`
}

type Kubernetes struct {
	Version              string
	RootCA               string
	BootstrapToken       string
	KubeletConfiguration *KubeletConfiguration
}

type Taint struct {
	Key    string `yaml:"key,omitempty"`
	Value  string `yaml:"value,omitempty"`
	Effect string `yaml:"effect,omitempty"`
}

type KubeletConfiguration struct {
	CPUManagerPolicy                string            `yaml:"cpuManagerPolicy,omitempty"`
	CPUCFSQuota                     *bool             `yaml:"cpuCFSQuota,omitempty"`
	CPUCFSQuotaPeriod               *Duration         `yaml:"cpuCFSQuotaPeriod,omitempty" json:",omitempty"`
	CPUManagerPolicyOptions         map[string]string `yaml:"cpuManagerPolicyOptions,omitempty"`
	CPUManagerReconcilePeriod       *Duration         `yaml:"cpuManagerReconcilePeriod,omitempty"`
	MemoryManagerPolicy             string            `yaml:"memoryManagerPolicy,omitempty"`
	TopologyManagerPolicy           string            `yaml:"topologyManagerPolicy,omitempty"`
	TopologyManagerScope            string            `yaml:"topologyManagerScope,omitempty"`
	TopologyManagerPolicyOptions    map[string]string `yaml:"topologyManagerPolicyOptions,omitempty"`
	ImageMinimumGCAge               *Duration         `yaml:"imageMinimumGCAge,omitempty"`
	ImageMaximumGCAge               *Duration         `yaml:"imageMaximumGCAge,omitempty"`
	ImageGCHighThresholdPercent     *int32            `yaml:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent      *int32            `yaml:"imageGCLowThresholdPercent,omitempty"`
	ShutdownGracePeriod             *Duration         `yaml:"shutdownGracePeriod,omitempty"`
	ShutdownGracePeriodCriticalPods *Duration         `yaml:"shutdownGracePeriodCriticalPods,omitempty"`
	AllowedUnsafeSysctls            []string          `yaml:"allowedUnsafeSysctls,omitempty"`
	ClusterDNS                      []string          `yaml:"clusterDNS,omitempty"`
	MaxPods                         *int32            `yaml:"maxPods,omitempty"`
	ProviderID                      string            `yaml:"providerID,omitempty"`
	FailSwapOn                      *bool             `yaml:"failSwapOn,omitempty"`
	SystemReserved                  map[string]string `yaml:"systemReserved,omitempty"`
	KubeReserved                    map[string]string `yaml:"kubeReserved,omitempty"`
	EvictionHard                    map[string]string `yaml:"evictionHard,omitempty"`
	RegisterWithTaints              []Taint           `yaml:"registerWithTaints,omitempty"`
}

// Duration is written as a kubelet reads it.
type Duration struct {
	time.Duration
}

// UnmarshalJSON reads a text such as 30s.
func (d *Duration) UnmarshalJSON(text []byte) error {
	parsed, err := time.ParseDuration(strings.Trim(string(text), `"`))
	d.Duration = parsed
	return err
}

// MarshalYAML writes it as a text.
func (d Duration) MarshalYAML() (any, error) {
	return d.String(), nil
}

// MarshalJSON writes it as a text.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}
