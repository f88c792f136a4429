package kubefleet

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed recorded/hub/*.yaml recorded/member/*.yaml
var recorded embed.FS

// The prefixes of the members' names, as recorded and on a local fleet.
const (
	recordedMember = "kind-cluster-"
	localMember    = "member-"
)

// Hub returns what stood on the hub. Its members are called as those of a local fleet.
func Hub() ([]*unstructured.Unstructured, error) {
	return read("recorded/hub", func(string) bool { return true })
}

// Member returns what stood on a member, counted from 1.
func Member(number int) ([]*unstructured.Unstructured, error) {
	return read("recorded/member", func(file string) bool {
		return strings.HasPrefix(file, fmt.Sprintf("cluster-%d-", number)) || file == fmt.Sprintf("appliedworks-cluster-%d.yaml", number)
	})
}

// read returns the objects in the wanted files of a folder.
func read(folder string, wanted func(file string) bool) ([]*unstructured.Unstructured, error) {
	files, err := fs.ReadDir(recorded, folder)
	if err != nil {
		return nil, fmt.Errorf("listing what was recorded: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		if !wanted(file.Name()) {
			continue
		}
		content, err := recorded.ReadFile(folder + "/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("reading what was recorded: %w", err)
		}
		objects, err := decode(bytes.ReplaceAll(content, []byte(recordedMember), []byte(localMember)))
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", file.Name(), err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// decode returns the object in a document, or those in the list that it is.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	document := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, err
	}
	if err := document.UnmarshalJSON(encoded); err != nil {
		return nil, err
	}
	if !document.IsList() {
		return []*unstructured.Unstructured{document}, nil
	}
	list, err := document.ToList()
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, nil
}

// OfKinds returns the objects of some kinds.
func OfKinds(objects []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
}
