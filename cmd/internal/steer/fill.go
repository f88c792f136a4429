package steer

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxClusters is how many clusters a form can be about.
const MaxClusters = 100

// Fill gives the field what a user has sent with a form: values of inputs, or for an argument the one that the path names, if it does. A
// field that the form does not have keeps its default.
func (f Field) Fill(named string, values []string) error {
	value := ""
	if len(values) > 0 {
		value = values[0]
	}
	if named != "" && f.Argument {
		value = named
	} else if f.Label == "" && !f.Hidden {
		return nil
	}
	if !f.Long {
		value = strings.TrimSpace(value)
	}
	if value == "" && f.Missing != "" {
		return errors.New(f.Missing)
	}
	switch into := f.Into.(type) {
	case *string:
		*into = value
	case *bool:
		*into = value != ""
	case *Reason:
		return into.Set(value)
	case *time.Duration:
		return fillDuration(into, value)
	case *[]string:
		if f.Argument {
			return chooseClusters(into, values)
		}
		*into = strings.Fields(strings.ReplaceAll(value, ",", " "))
	}
	return nil
}

// chooseClusters takes the clusters that were chosen, one at least.
func chooseClusters(into *[]string, chosen []string) error {
	*into = chosen
	if number := len(chosen); number == 0 || number > MaxClusters {
		return fmt.Errorf("choose from 1 to %d clusters: there were %d", MaxClusters, number)
	}
	return nil
}

// fillDuration reads a duration; without a value the default stays.
func fillDuration(into *time.Duration, value string) (err error) {
	if value == "" {
		return nil
	}
	if *into, err = time.ParseDuration(value); err != nil {
		return fmt.Errorf("%q is no duration: use one such as 2h or 30m", value)
	}
	return nil
}
