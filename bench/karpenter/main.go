// Command karpenter plans with the real Karpenter core.
//
// It reads the files `tenon plan` reads and prints the JSON `tenon plan -o json` prints, so that the two can be
// compared on the same input. Everything runs in memory: no cluster, no network.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// paths is a flag that may be given several times.
type paths []string

func (p *paths) String() string     { return fmt.Sprint(*p) }
func (p *paths) Set(s string) error { *p = append(*p, s); return nil }

type arguments struct {
	objects   paths
	types     string
	options   string
	runs      int
	solveFor  time.Duration
	scenarios string
	out       string
	version   bool
	disruption
}

func main() {
	// What goes wrong is told by our own errors; Karpenter's log would drown them.
	log.SetLogger(logr.Discard())
	if err := run(parse()); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func parse() arguments {
	var a arguments
	flag.Var(&a.objects, "f", "file or folder with objects, `-` for standard input; may be repeated")
	flag.StringVar(&a.types, "instance-types", "", "JSON file with the instance types")
	flag.StringVar(&a.options, "options", "", "YAML or JSON file with the controller's settings")
	flag.IntVar(&a.runs, "runs", 0, "plan that many times and print a JSON array of the results")
	flag.DurationVar(&a.solveFor, "solve-for", solveFor, "how long the solver may run")
	flag.StringVar(&a.scenarios, "scenarios", "", "folder of scenario folders, each with objects.yaml or objects.json, instance-types.json and perhaps options.json")
	flag.StringVar(&a.out, "out", "", "with --scenarios: write each scenario's results to NAME.json in this folder instead of printing them")
	flag.BoolVar(&a.version, "version", false, "print the version of Karpenter and exit")
	a.disruption.flags()
	flag.Parse()
	return a
}

func run(a arguments) error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; files are given with -f", flag.Arg(0))
	case a.version:
		fmt.Println("karpenter", karpenterVersion())
		return nil
	case a.scenarios != "":
		return runScenarios(a)
	}
	results, err := a.answers("")
	if err != nil {
		return err
	}
	if a.runs == 0 && len(results) == 1 {
		return json.NewEncoder(os.Stdout).Encode(results[0])
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// answers are what is asked of one scenario, once for each run. Its name is asked for only where other files are named after it.
func (a arguments) answers(name string) ([]any, error) {
	switch {
	case a.check != "":
		checked, err := a.checkFile(name)
		return []any{checked}, err
	case a.disrupt:
		return a.playFiles()
	}
	results, err := planFiles(a, max(a.runs, 1))
	all := make([]any, 0, len(results))
	for _, r := range results {
		all = append(all, r)
	}
	return all, err
}

// runScenarios plans every folder below a.scenarios, in the order of their names.
func runScenarios(a arguments) error {
	entries, err := os.ReadDir(a.scenarios)
	if err != nil {
		return err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		results, err := a.scenarioIn(filepath.Join(a.scenarios, entry.Name())).answers(entry.Name())
		if err != nil {
			return fmt.Errorf("scenario %s: %w", entry.Name(), err)
		}
		if err := deliver(a, entry.Name(), results); err != nil {
			return err
		}
	}
	return nil
}

// scenarioIn is what is to be planned if only the files of one folder are.
func (a arguments) scenarioIn(folder string) arguments {
	a.objects, a.options, a.types = nil, "", filepath.Join(folder, "instance-types.json")
	for _, name := range []string{"objects.yaml", "objects.json"} {
		if path := filepath.Join(folder, name); isThere(path) {
			a.objects = append(a.objects, path)
		}
	}
	if path := filepath.Join(folder, "options.json"); isThere(path) {
		a.options = path
	}
	return a
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// deliver prints one line a scenario, or writes one file a scenario.
func deliver(a arguments, name string, results []any) error {
	if a.out == "" {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"scenario": name, "runs": results})
	}
	text, err := json.Marshal(results)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.out, name+".json"), text, 0o644)
}

// planFiles reads the files once and plans n times.
func planFiles(a arguments, n int) ([]result, error) {
	w, err := loadWorld(a)
	if err != nil {
		return nil, err
	}
	results := make([]result, 0, n)
	for range n {
		r, err := w.plan(a.solveFor)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func karpenterVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "sigs.k8s.io/karpenter" {
			return module.Version
		}
	}
	return "unknown"
}
