// Package manifest reads objects of files, of folders and of the standard input.
package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetflow/fleetflow/apis/document"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// stdinName is what a user calls the standard input by, stdinSource what messages do.
const (
	stdinName   = "-"
	stdinSource = "standard input"
)

// Manifest is an object of a file, or of the standard input.
type Manifest struct {
	// Source is where it was found.
	Source string
	Object *unstructured.Unstructured
}

// Read reads the objects of files and of folders, those of lists one by one. It is our own because the builder of kubectl
// brings kustomize into the program.
func Read(stdin io.Reader, files []string, recursive bool) ([]Manifest, error) {
	var found []Manifest
	for _, named := range files {
		if named == stdinName {
			more, err := decodeAll(stdinSource, stdin)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
			continue
		}
		if strings.HasPrefix(named, "https://") || strings.HasPrefix(named, "http://") {
			return nil, fmt.Errorf("reading manifests: %s is no file: fetch it and give it on the standard input, as -", named)
		}
		paths, err := filesBelow(named, recursive)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			more, err := readFile(path)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
	}
	return found, nil
}

// filesBelow returns the files with manifests of a folder, and of those below it if asked for; of a file, it is the file.
func filesBelow(named string, recursive bool) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(named, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != named && !recursive:
			return fs.SkipDir
		case entry.IsDir():
		case path == named || slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading manifests: the path %q does not exist", named)
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	return paths, nil
}

func readFile(path string) ([]Manifest, error) {
	file, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	defer file.Close()
	return decodeAll(path, file)
}

// decodeAll reads documents of YAML or JSON; empty ones do not count.
func decodeAll(source string, in io.Reader) (found []Manifest, err error) {
	parts := yaml.NewYAMLReader(bufio.NewReader(in))
	for {
		part, err := parts.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		for _, text := range splitJSON(part) {
			var value any
			if value, err = document.Decode(text); err != nil {
				break
			}
			content, is := value.(map[string]any)
			if !is && value != nil {
				err = errors.New("a document is no object")
			}
			if len(content) > 0 {
				found, err = appendFlat(found, source, &unstructured.Unstructured{Object: content})
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests of %s: %w", source, err)
		}
	}
}

// splitJSON splits objects of JSON that follow each other; anything else stays as it is.
func splitJSON(text []byte) [][]byte {
	var parts [][]byte
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var part json.RawMessage
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			return [][]byte{text}
		}
		parts = append(parts, part)
	}
}

// appendFlat appends an object, or the objects of a list.
func appendFlat(found []Manifest, source string, document *unstructured.Unstructured) ([]Manifest, error) {
	if document.IsList() {
		err := document.EachListItem(func(item runtime.Object) (err error) {
			found, err = appendFlat(found, source, item.(*unstructured.Unstructured))
			return err
		})
		return found, err
	}
	if document.GetKind() == "" || document.GetAPIVersion() == "" {
		return found, errors.New("an object lacks apiVersion or kind")
	}
	return append(found, Manifest{source, document}), nil
}

// Of reads the objects of files and folders, or of the standard input, that all have to be of a kind of ours.
func Of[T any](in io.Reader, files []string, kind string) ([]*T, error) {
	found, err := Read(in, files, false)
	if err != nil {
		return nil, err
	}
	var objects []*T
	for _, one := range found {
		if one.Object.GroupVersionKind() != fleetflowv1alpha1.GroupVersion.WithKind(kind) {
			return nil, fmt.Errorf("%s: %s is not a %s of %s", one.Source, one.Object.GetKind(), kind, fleetflowv1alpha1.GroupVersion)
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(one.Object.Object, typed, true); err != nil {
			return nil, fmt.Errorf("%s: %w", one.Source, err)
		}
		objects = append(objects, typed)
	}
	return objects, nil
}
