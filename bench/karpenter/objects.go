// Which objects the files hold.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kinds are the ones a plan depends on; others are passed over with a note.
var kinds = map[string]schema.GroupVersion{
	"Pod": {Version: "v1"}, "Node": {Version: "v1"}, "Namespace": {Version: "v1"}, "Service": {Version: "v1"},
	"PersistentVolume": {Version: "v1"}, "PersistentVolumeClaim": {Version: "v1"}, "ReplicationController": {Version: "v1"},
	"NodePool": {Group: "karpenter.sh", Version: "v1"}, "NodeClaim": {Group: "karpenter.sh", Version: "v1"},
	"DaemonSet": {Group: "apps", Version: "v1"}, "ReplicaSet": {Group: "apps", Version: "v1"},
	"StatefulSet": {Group: "apps", Version: "v1"}, "Deployment": {Group: "apps", Version: "v1"},
	"StorageClass": {Group: "storage.k8s.io", Version: "v1"}, "CSINode": {Group: "storage.k8s.io", Version: "v1"},
	"VolumeAttachment":    {Group: "storage.k8s.io", Version: "v1"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1"},
}

// readObjects reads every file, and every file of every folder but those in except.
func readObjects(from []string, except ...string) ([]client.Object, error) {
	var all []client.Object
	for _, path := range from {
		files, err := filesOf(path, except)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

func filesOf(path string, except []string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		switch filepath.Ext(file) {
		case ".yaml", ".yml", ".json":
			if !entry.IsDir() && !isOneOf(file, except) {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

func isOneOf(file string, others []string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	for _, other := range others {
		if otherInfo, err := os.Stat(other); other != "" && err == nil && os.SameFile(info, otherInfo) {
			return true
		}
	}
	return false
}

func readFile(path string) ([]client.Object, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(os.Stdin)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// decode reads documents divided by `---`, each YAML or JSON, each an object, a list of kind List, or a JSON array.
func decode(text []byte) ([]client.Object, error) {
	// The reader loses a last line without an end whose length is a multiple of its buffer's.
	text = append(text, '\n')
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var all []client.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		objects, err := decodeDocument(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
}

func decodeDocument(raw []byte) ([]client.Object, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	if raw[0] == '[' {
		return decodeItems(raw)
	}
	var head struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Items      json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	if strings.HasSuffix(head.Kind, "List") && head.Items != nil {
		return decodeItems(head.Items)
	}
	group, known := kinds[head.Kind]
	if stated, err := schema.ParseGroupVersion(head.APIVersion); err != nil || !known || stated.Group != group.Group {
		fmt.Fprintf(os.Stderr, "note: %s %s is passed over\n", head.APIVersion, head.Kind)
		return nil, err
	}
	object, err := newObject(group.WithKind(head.Kind))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return []client.Object{object}, nil
}

func decodeItems(raw []byte) ([]client.Object, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	var all []client.Object
	for _, item := range items {
		objects, err := decodeDocument(item)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func newObject(kind schema.GroupVersionKind) (client.Object, error) {
	made, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", kind)
	}
	return object, nil
}
