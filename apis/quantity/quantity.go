// Package quantity reads quantities that others have written.
//
// A quantity with an exponent is computed when it is read: ten characters of an exponent take a program for hours, and nothing can
// interrupt it. So what is too large to be meant is refused by its text, before it is read.
package quantity

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// Pattern is what definitions demand of the text of a quantity. It is what resource.ParseQuantity reads, with exponents of two
	// digits at most.
	Pattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
	// MaxLength is how long the text of a quantity may be.
	MaxLength = 64
)

// longExponent is how a text ends that takes long to compute.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3,}$`)

// Parse reads a quantity from a text of others.
func Parse(text string) (resource.Quantity, error) {
	if err := check(text); err != nil {
		return resource.Quantity{}, err
	}
	value, err := resource.ParseQuantity(text) //nolint:forbidigo // this is the reader with bounds
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("it is not a quantity such as 5, 500m or 10Gi: %w", err)
	}
	return value, nil
}

// check refuses a text that is too long to be a quantity, or that would take long to compute.
func check(text string) error {
	switch {
	case len(text) > MaxLength:
		return fmt.Errorf("it has %d characters: a quantity has %d at most", len(text), MaxLength)
	case longExponent.MatchString(text):
		return fmt.Errorf("its exponent has more than two digits: write the quantity like 5, 500m or 10Gi")
	}
	return nil
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// CheckContent looks at every text in decoded JSON that is a quantity in a Go type, and refuses those that Parse would not compute. A
// text of another form passes: the API server refuses it at once.
func CheckContent(of reflect.Type, content any) error {
	path, err := checkAt(of, content)
	if err != nil {
		slices.Reverse(path)
		return fmt.Errorf("field %s is no quantity that can be read: %w", strings.Join(path, "."), err)
	}
	return nil
}

// checkAt returns with an error the path to the text, the last field first.
func checkAt(of reflect.Type, content any) (path []string, err error) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == quantityType {
		text, _ := content.(string)
		return nil, check(text)
	}
	switch value := content.(type) {
	case map[string]any:
		for name, part := range value {
			inner := FieldType(of, name)
			if inner == nil {
				continue
			}
			if path, err = checkAt(inner, part); err != nil {
				return append(path, name), err
			}
		}
	case []any:
		if of.Kind() != reflect.Slice {
			return nil, nil
		}
		for i, part := range value {
			if path, err = checkAt(of.Elem(), part); err != nil {
				return append(path, fmt.Sprint(i)), err
			}
		}
	}
	return nil, nil
}

// FieldType returns the type of what a struct or map has under a name in JSON; nil if it has nothing there.
func FieldType(of reflect.Type, name string) reflect.Type {
	switch of.Kind() {
	case reflect.Map:
		return of.Elem()
	case reflect.Struct:
		for field := range of.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag == name {
				return field.Type
			}
			if tag == "" && field.Anonymous {
				embedded := field.Type
				if embedded.Kind() == reflect.Pointer {
					embedded = embedded.Elem()
				}
				if found := FieldType(embedded, name); found != nil {
					return found
				}
			}
		}
	}
	return nil
}
