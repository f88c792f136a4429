package notification

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// What the evaluation of an expression may cost.
const (
	maxCost        = 10_000
	maxEvaluation  = 50 * time.Millisecond
	interruptEvery = 100
	// maxText is how much of what a template gives is told.
	maxText = 4096
)

// Fact is what expressions and templates see of a record: nothing else of the hub.
type Fact struct {
	Type          string            `cel:"type"`
	Time          time.Time         `cel:"time"`
	PlacementName string            `cel:"placementName"`
	UpdateRunName string            `cel:"updateRunName"`
	StageName     string            `cel:"stageName"`
	Namespace     string            `cel:"namespace"`
	Actor         Actor             `cel:"actor"`
	Comment       string            `cel:"comment"`
	Message       string            `cel:"message"`
	PlanHash      string            `cel:"planHash"`
	Data          map[string]string `cel:"data"`
}

// Actor is who has done what a record tells.
type Actor struct {
	Username string `cel:"username"`
	Verified bool   `cel:"verified"`
	Channel  string `cel:"channel"`
}

// factOf returns what rules see of a record. What people and members have said is on one line: it forges no line of a message.
func factOf(record *fleetflowv1alpha1.AuditRecord) *Fact {
	spec := &record.Spec
	fact := &Fact{
		Type: string(spec.Type), Time: spec.Time.UTC(), PlacementName: spec.PlacementName, UpdateRunName: spec.UpdateRunName,
		StageName: spec.StageName, Namespace: spec.SubjectRef.Namespace, Comment: shown(spec.Comment), Message: shown(spec.Message), PlanHash: spec.PlanHash,
		Actor: Actor{Username: fleetflowv1alpha1.AuditedFleet}, Data: map[string]string{},
	}
	if by := spec.Actor; by != nil {
		fact.Actor = Actor{Username: shown(by.Username), Verified: by.Verified, Channel: shown(by.Channel)}
	}
	for name, value := range spec.Data {
		fact.Data[name] = shown(string(value))
	}
	return fact
}

// values returns a fact as templates see it: as texts without methods.
func (f *Fact) values() map[string]any {
	return map[string]any{
		"type": f.Type, "time": f.Time.Format(time.RFC3339), "placementName": f.PlacementName, "updateRunName": f.UpdateRunName,
		"stageName": f.StageName, "namespace": f.Namespace, "comment": f.Comment, "message": f.Message, "planHash": f.PlanHash, "data": f.Data,
		"actor": map[string]any{"username": f.Actor.Username, "verified": f.Actor.Verified, "channel": f.Actor.Channel},
	}
}

// Rule is a NotificationRule that can be followed.
type Rule struct {
	*fleetflowv1alpha1.NotificationRule
	// Since is from when on records are told; zero is since the rule was created.
	Since      time.Time
	placements labels.Selector
	when       cel.Program
	text       *template.Template
	// earlier is the rule as it was before it was changed: records that were there then and still wait are told by it.
	earlier *Rule
	// isBroken is whether the rule cannot be followed as it is now: it tells only what it was to tell before.
	isBroken bool
}

// maxEarlier is how often a rule may be changed while a record waits.
const maxEarlier = 20

// follow returns a rule that takes over what waits for an earlier one.
func (r *Rule) follow(earlier *Rule) *Rule {
	next := *r
	last := &next
	for range maxEarlier {
		if earlier == nil {
			break
		}
		kept := *earlier
		last.earlier = &kept
		last = &kept
		earlier = kept.earlier
	}
	last.earlier = nil
	return &next
}

// broken returns the rule as it is followed since it was changed to what cannot be.
func (r *Rule) broken(now *fleetflowv1alpha1.NotificationRule) *Rule {
	next := *r
	next.NotificationRule = now.DeepCopy()
	next.NotificationRule.Spec = r.Spec
	next.isBroken = true
	return &next
}

// at returns the rule as it was when a record was written.
func (r *Rule) at(record *fleetflowv1alpha1.AuditRecord) *Rule {
	for r.earlier != nil && record.CreationTimestamp.Time.Before(r.Since) {
		r = r.earlier
	}
	return r
}

// tellsIn reports whether a record is told by the rule in a channel.
func (r *Rule) tellsIn(ctx context.Context, channel string, record *fleetflowv1alpha1.AuditRecord, placement map[string]string) (tells bool, problem string) {
	if r.isBroken || !slices.Contains(r.ChannelNames(), channel) {
		return false, ""
	}
	return r.Tells(ctx, record, placement)
}

// Problem says why a rule, or a channel, cannot be used.
type Problem struct{ Reason, Text string }

// Compile reads a rule; a problem says what is wrong with it.
func Compile(rule *fleetflowv1alpha1.NotificationRule) (*Rule, *Problem) {
	compiled := &Rule{NotificationRule: rule, placements: labels.Everything()}
	if unknown := rule.UnknownTypes(); len(unknown) > 0 {
		return nil, &Problem{fleetflowv1alpha1.ReasonUnknownType, fmt.Sprintf("types: no record has the type %s; there are %s",
			strings.Join(unknown, ", "), allTypes())}
	}
	if rule.Spec.PlacementSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(rule.Spec.PlacementSelector)
		if err != nil {
			return nil, &Problem{fleetflowv1alpha1.ReasonInvalidSelector, "placementSelector: " + err.Error()}
		}
		compiled.placements = selector
	}
	var problem string
	if compiled.when, problem = compileWhen(rule.Spec.When); problem != "" {
		return nil, &Problem{fleetflowv1alpha1.ReasonInvalidExpression, "when: " + problem}
	}
	if compiled.text, problem = compileTemplate(rule.Spec.Template); problem != "" {
		return nil, &Problem{fleetflowv1alpha1.ReasonInvalidTemplate, "template: " + problem}
	}
	return compiled, nil
}

// allTypes lists the types of records for a sentence.
func allTypes() string {
	names := make([]string, 0, len(fleetflowv1alpha1.RecordTypes()))
	for _, kind := range fleetflowv1alpha1.RecordTypes() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// compileWhen compiles an expression about a record; nil is none. The types of its fields are known, so that one that is not there is
// found now, and not when something has happened.
func compileWhen(text string) (program cel.Program, problem string) {
	if text == "" {
		return nil, ""
	}
	env, err := cel.NewEnv(
		ext.NativeTypes(reflect.TypeFor[*Fact](), reflect.TypeFor[*Actor](), ext.ParseStructTags(true)),
		cel.Variable("record", cel.ObjectType("notification.Fact")),
	)
	if err != nil {
		return nil, err.Error()
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Sprintf("%q is not valid CEL: %s", text, oneLine(issues.Err().Error()))
	}
	if tree.OutputType() != cel.BoolType {
		return nil, fmt.Sprintf("%q gives %s, not bool", text, tree.OutputType())
	}
	program, err = env.Program(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Sprintf("%q is not valid CEL: %s", text, oneLine(err.Error()))
	}
	return program, ""
}

// oneLine shortens what the compiler draws over several lines.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, "ERROR: "), "\n")
	return line
}

// inTemplates are the functions that templates may call: none makes a text longer than what it is given.
var inTemplates = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice"}

// compileTemplate reads a template; nil is none. One that has loops, or that calls itself, could take any amount of time.
func compileTemplate(text string) (*template.Template, string) {
	if text == "" {
		return nil, ""
	}
	parsed, err := template.New("template").Parse(text)
	if err != nil {
		return nil, strings.TrimPrefix(err.Error(), "template: ")
	}
	if len(parsed.Templates()) > 1 || parsed.Tree == nil {
		return nil, "it defines another template, which it may not"
	}
	if problem := refuseNode(parsed.Root); problem != "" {
		return nil, problem
	}
	return parsed, ""
}

// refuseNode says what in a template it may not have; empty if there is nothing.
func refuseNode(node parse.Node) (problem string) {
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil {
			return ""
		}
		return firstProblem(node.Nodes)
	case *parse.RangeNode:
		return "it has a loop (range), which it may not"
	case *parse.TemplateNode:
		return "it calls a template, which it may not"
	case *parse.IfNode:
		return refuseBranch(&node.BranchNode)
	case *parse.WithNode:
		return refuseBranch(&node.BranchNode)
	case *parse.ActionNode:
		return refuseNode(node.Pipe)
	case *parse.ChainNode:
		return refuseNode(node.Node)
	case *parse.PipeNode:
		if node == nil {
			return ""
		}
		for _, command := range node.Cmds {
			if problem := firstProblem(command.Args); problem != "" {
				return problem
			}
		}
	case *parse.IdentifierNode:
		if !slices.Contains(inTemplates, node.Ident) {
			return fmt.Sprintf("it calls %s; it may call %s", node.Ident, strings.Join(inTemplates, ", "))
		}
	}
	return ""
}

func refuseBranch(branch *parse.BranchNode) string {
	if problem := refuseNode(branch.Pipe); problem != "" {
		return problem
	}
	if problem := refuseNode(branch.List); problem != "" {
		return problem
	}
	return refuseNode(branch.ElseList)
}

func firstProblem(nodes []parse.Node) string {
	for _, node := range nodes {
		if problem := refuseNode(node); problem != "" {
			return problem
		}
	}
	return ""
}

// Tells reports whether a record is told by the rule. The labels are those of its placement, as GateLabels has them. An expression that
// gives an error has the record told, and problem says what it is.
func (r *Rule) Tells(ctx context.Context, record *fleetflowv1alpha1.AuditRecord, placement map[string]string) (tells bool, problem string) {
	if !r.NotificationRule.Tells(record.Spec.Type) || !r.placements.Matches(labels.Set(placement)) || r.isBefore(record) {
		return false, ""
	}
	if r.when == nil {
		return true, ""
	}
	ctx, cancel := context.WithTimeout(ctx, maxEvaluation)
	defer cancel()
	value, _, err := r.when.ContextEval(ctx, map[string]any{"record": factOf(record)})
	if err != nil {
		return true, fmt.Sprintf("when %q gives an error: %s", r.Spec.When, oneLine(err.Error()))
	}
	return value == types.True, ""
}

// isBefore reports whether a record was there before the rule was.
func (r *Rule) isBefore(record *fleetflowv1alpha1.AuditRecord) bool {
	return record.CreationTimestamp.Before(&r.CreationTimestamp) || record.CreationTimestamp.Time.Before(r.Since)
}

// Text returns what the template of the rule says of a record; "" if there is none. Where the template gives an error, problem says which,
// and the text is the usual one.
func (r *Rule) Text(record *fleetflowv1alpha1.AuditRecord) (text, problem string) {
	if r == nil || r.text == nil {
		return "", ""
	}
	told := &bounded{left: maxText}
	err := r.text.Execute(told, factOf(record).values())
	if err != nil && told.left > 0 {
		return "", "the template gives an error: " + oneLine(err.Error())
	}
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(told.String(), "<no value>", ""), "")), ""
}

// bounded takes so many bytes of a text.
type bounded struct {
	strings.Builder
	left int
}

var errLong = fmt.Errorf("the text is longer than %d bytes", maxText)

// Write takes what there is room for, and refuses more.
func (b *bounded) Write(text []byte) (int, error) {
	if len(text) > b.left {
		_, _ = b.Builder.Write(text[:b.left]) // a builder takes all
		b.left = 0
		return 0, errLong
	}
	b.left -= len(text)
	return b.Builder.Write(text)
}
