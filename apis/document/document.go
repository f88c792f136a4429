// Package document reads YAML that others have written.
//
// An alias is a few characters that stand for any number of them: a document of 300 KB can become one of a gigabyte. So a document may
// have aliases, but what comes out of it is bounded by what is written.
package document

import (
	"bytes"
	"fmt"

	yamlv2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const (
	// growth is how many times its own length the texts of a document may have. Without aliases a text is almost never longer
	// than it is written: only a few escapes of two bytes stand for three.
	growth = 2
	// nodeSize is what a value counts beside its text.
	nodeSize = 1
)

// ToJSON makes JSON of one document of YAML or JSON. A field that is there twice is an error: which of the two is meant is
// unknown.
func ToJSON(text []byte) ([]byte, error) {
	if err := checkAliases(text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSONStrict(text) //nolint:forbidigo // this is the reader with bounds
}

// Decode reads one document of YAML or JSON, with integers as such.
func Decode(text []byte) (any, error) {
	data, err := ToJSON(text)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// checkAliases refuses a document whose aliases make too much of it. The reader of YAML itself bounds how many values there are; texts
// that are the same share their memory until they are written as JSON.
func checkAliases(text []byte) error {
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return nil // there are no aliases
	}
	var value any
	if err := yamlv2.UnmarshalStrict(text, &value); err != nil {
		return err
	}
	if limit := growth * len(text); sizeUpTo(limit, value) > limit {
		return fmt.Errorf("its aliases make more than %d times of it what is written: write out what they stand for", growth)
	}
	return nil
}

// sizeUpTo counts the bytes of a value, and stops when there are more than the limit.
func sizeUpTo(limit int, value any) int {
	size := nodeSize
	switch v := value.(type) {
	case string:
		size += len(v)
	case []any:
		for _, item := range v {
			if size += sizeUpTo(limit-size, item); size > limit {
				return size
			}
		}
	case map[any]any:
		for key, item := range v {
			size += sizeUpTo(limit-size, key)
			if size += sizeUpTo(limit-size, item); size > limit {
				return size
			}
		}
	}
	return size
}
