package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is an amount of time, such as 90s, 10m or 1h30m: up to four numbers of up to five digits, each with the unit h, m, s or
// ms, as in Gateway API.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=28
type Duration struct {
	time.Duration `json:"-"`
}

// durationGrammar is what the rules of the definitions repeat, which say the bounds of each field, too.
const durationGrammar = "^([0-9]{1,5}(h|m|s|ms)){1,4}$"

var durationForm = regexp.MustCompile(durationGrammar)

// ParseDuration reads the text of a Duration.
func ParseDuration(text string) (Duration, error) {
	if !durationForm.MatchString(text) {
		return Duration{}, fmt.Errorf("%q is no duration: write it like 90s, 10m or 1h30m, with the units h, m, s and ms", text)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return Duration{}, fmt.Errorf("reading a duration: %w", err)
	}
	return Duration{Duration: d}, nil
}

// UnmarshalJSON reads a Duration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// MarshalJSON writes a Duration, in milliseconds rounded down.
func (d Duration) MarshalJSON() ([]byte, error) {
	text := d.Text()
	if !durationForm.MatchString(text) {
		return nil, fmt.Errorf("a duration of %s cannot be written: it has to be 0 to 99999h", d.Duration)
	}
	return json.Marshal(text)
}

// Text returns the Duration in its grammar, such as 1h30m.
func (d Duration) Text() string {
	left := d.Duration
	text := strings.Builder{}
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := left / unit.of; n != 0 {
			text.WriteString(strconv.FormatInt(int64(n), 10) + unit.name)
			left -= n * unit.of
		}
	}
	if text.Len() == 0 {
		return "0s"
	}
	return text.String()
}
