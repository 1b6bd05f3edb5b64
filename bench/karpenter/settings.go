// Which settings of the controller the plan is made with.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"unicode"

	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/yaml"
)

// settingNames are the settings a plan may depend on, as flags.
var settingNames = map[string]bool{
	"preference-policy": true, "min-values-policy": true, "feature-gates": true,
	"scheduler-config": true, "ignore-dra-requests": true, "cpu-requests": true,
}

// readSettings puts the settings of the file, and Karpenter's defaults for the rest, into the context.
func readSettings(ctx context.Context, path string) (context.Context, error) {
	var args []string
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if args, err = settingArgs(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	// Karpenter takes defaults from the environment, which is not part of the input.
	for name := range settingNames {
		os.Unsetenv(strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("options", flag.ContinueOnError)}
	settings := &options.Options{}
	settings.AddFlags(flags)
	if err := settings.Parse(flags, args...); err != nil {
		return nil, err
	}
	if !settings.IgnoreDRARequests || settings.FeatureGates.CapacityBuffer || settings.FeatureGates.NodeOverlay {
		return nil, fmt.Errorf("devices, capacity buffers and node overlays cannot be planned here")
	}
	return settings.ToContext(ctx), nil
}

func settingArgs(text []byte) ([]string, error) {
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	var args []string
	for key, value := range values {
		name := kebab(key)
		if !settingNames[name] {
			return nil, fmt.Errorf("unknown setting %q", key)
		}
		args = append(args, fmt.Sprintf("--%s=%s", name, settingText(name, value)))
	}
	sort.Strings(args)
	return args, nil
}

func settingText(name string, value any) string {
	object, isObject := value.(map[string]any)
	switch {
	case isObject && name == "feature-gates":
		var gates []string
		for gate, on := range object {
			gates = append(gates, fmt.Sprintf("%s=%v", gate, on))
		}
		sort.Strings(gates)
		return strings.Join(gates, ",")
	case isObject:
		text, _ := json.Marshal(object)
		return string(text)
	default:
		return fmt.Sprint(value)
	}
}

// kebab turns `minValuesPolicy`, `min-values-policy` and `MIN_VALUES_POLICY` into the name of the flag.
func kebab(key string) string {
	if strings.ToUpper(key) == key {
		return strings.ToLower(strings.ReplaceAll(key, "_", "-"))
	}
	var out []rune
	letters := []rune(key)
	for i, letter := range letters {
		// An upper-case letter begins a word, unless it stands inside an acronym.
		begins := unicode.IsUpper(letter) && i > 0 &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins && letters[i-1] != '-' {
			out = append(out, '-')
		}
		out = append(out, unicode.ToLower(letter))
	}
	return string(out)
}
