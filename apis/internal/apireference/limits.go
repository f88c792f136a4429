package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// typeOf says in words what values a field takes.
func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString && strings.Contains(schema.Pattern, "[KMGTPE]i"):
		return "quantity"
	case schema.XIntOrString:
		return "number or string"
	case schema.Items != nil:
		return "list of " + plural(typeOf(schema.Items.Schema))
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map to " + plural(typeOf(schema.AdditionalProperties.Schema))
	case schema.Type == "object" && len(schema.Properties) == 0, schema.XEmbeddedResource:
		return "any object"
	case schema.Type == "":
		return "any value"
	case schema.Type == "integer":
		return "number"
	case schema.Format == "date-time":
		return "time"
	case schema.Format == "byte":
		return "base64"
	}
	return schema.Type
}

func plural(of string) string {
	switch of {
	case "any object":
		return "objects of any kind"
	case "any value":
		return "any values"
	case "base64":
		return of
	case "quantity":
		return "quantities"
	case "number or string":
		return "numbers or strings"
	}
	if rest, found := strings.CutPrefix(of, "list of "); found {
		return "lists of " + rest
	}
	if rest, found := strings.CutPrefix(of, "map to "); found {
		return "maps to " + rest
	}
	return of + "s"
}

// limitsOf says in words what the schema of a field refuses, one sentence per limit; rules come last.
func limitsOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	limits := ownLimits(schema)
	var inner *apiextensionsv1.JSONSchemaProps
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		inner = schema.Items.Schema
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		inner = schema.AdditionalProperties.Schema
	default:
		return limits
	}
	for _, limit := range limitsOf(inner) {
		limits = append(limits, "Each entry: "+limit)
	}
	return limits
}

func ownLimits(schema *apiextensionsv1.JSONSchemaProps) []string {
	var limits []string
	say := func(format string, values ...any) { limits = append(limits, fmt.Sprintf(format, values...)) }
	if len(schema.Enum) > 0 {
		var values []string
		for _, value := range schema.Enum {
			values = append(values, code(strings.Trim(string(value.Raw), `"`)))
		}
		say("One of %s.", strings.Join(values, ", "))
	}
	between(say, "", schema.Minimum, schema.Maximum)
	between(say, " characters", schema.MinLength, schema.MaxLength)
	between(say, " entries", schema.MinItems, schema.MaxItems)
	between(say, " entries", schema.MinProperties, schema.MaxProperties)
	if schema.Pattern != "" && !slices.Contains([]string{"quantity", "time"}, typeOf(schema)) {
		say("Matches %s.", code(schema.Pattern))
	}
	switch ptr.Deref(schema.XListType, "") {
	case "map":
		keys := slices.Clone(schema.XListMapKeys)
		for i := range keys {
			keys[i] = code(keys[i])
		}
		say("One entry for each %s.", strings.Join(keys, " and "))
	case "set":
		say("No entry twice.")
	}
	return append(limits, rulesOf(schema)...)
}

// between says what the bounds of a field are.
func between[N int64 | float64](say func(string, ...any), of string, least, most *N) {
	if most != nil && *most == 1 {
		of = strings.NewReplacer("characters", "character", "entries", "entry").Replace(of)
	}
	text := func(number *N) string { return strconv.FormatFloat(float64(*number), 'f', -1, 64) }
	switch {
	case least != nil && most != nil && *least == *most:
		say("Exactly %s%s.", text(most), of)
	case least != nil && most != nil:
		say("%s to %s%s.", text(least), text(most), of)
	case most != nil:
		say("At most %s%s.", text(most), of)
	case least != nil && *least == 1 && of != "":
		say("Not empty.")
	case least != nil:
		say("At least %s%s.", text(least), of)
	}
}

// rulesOf returns what users are told who break a rule.
func rulesOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	var rules []string
	for _, rule := range schema.XValidations {
		switch {
		case rule.Message != "":
			rules = append(rules, "Rule: “"+escape(rule.Message)+"”")
		case rule.MessageExpression != "":
			rules = append(rules, "Rule: “"+escape(withGaps(rule.MessageExpression))+"”")
		default:
			rules = append(rules, "Rule: "+code(rule.Rule))
		}
	}
	return rules
}

// withGaps returns the text that an expression makes, with … where the text depends on the object. Text in brackets is
// an argument of something and not part of what is made.
func withGaps(expression string) string {
	var text strings.Builder
	quote, depth, gap := rune(0), 0, false
	for _, char := range expression {
		switch {
		case quote != 0 && char == quote:
			quote = 0
		case quote != 0 && depth == 0:
			text.WriteRune(char)
			gap = false
		case quote != 0:
		case char == '"' || char == '\'':
			quote = char
		case !gap && char != '+' && char != ' ':
			text.WriteRune('…')
			gap = true
		}
		if quote == 0 {
			depth += strings.Count("([{", string(char)) - strings.Count(")]}", string(char))
		}
	}
	return text.String()
}
