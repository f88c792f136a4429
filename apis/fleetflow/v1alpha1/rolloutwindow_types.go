package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RolloutWindow says when rollouts may start on clusters: in the openings of an Allow, never in those of a Deny. Whatever
// is under way when a window closes goes on to its end.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=rwin,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Starts",type=string,JSONPath=`.status.starts`
// +kubebuilder:printcolumn:name="Next-Transition",type=string,JSONPath=`.status.nextTransitionTime`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.matchedClusters`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Zone",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type RolloutWindow struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the window is about, and when it opens.
	// +required
	Spec RolloutWindowSpec `json:"spec"`

	// Status says whether an opening of the window takes place, and when that changes.
	// +optional
	Status RolloutWindowStatus `json:"status,omitempty"`
}

// RolloutWindowSpec says what a window is about, and when it opens.
//
// +kubebuilder:validation:XValidation:rule="self.scope == oldSelf.scope",message="scope does not change: create another window",reason=FieldValueInvalid,fieldPath=".scope"
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) == (self.scope == 'Cluster')",message="clusterSelector belongs to scope Cluster, which needs one: {} selects all clusters",reason=FieldValueInvalid,fieldPath=".clusterSelector"
// +kubebuilder:validation:XValidation:rule="self.scope == 'Placement' ? has(self.placementSelector) || has(self.namespaceSelector) : (self.scope == 'Stage' || !has(self.placementSelector) && !has(self.namespaceSelector))",message="placementSelector and namespaceSelector belong to the scopes Placement, which needs one of them, and Stage: {} selects all placements",reason=FieldValueInvalid,fieldPath=".placementSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.stages) || self.scope == 'Stage'",message="stages belongs to scope Stage: remove stages, or create a window of that scope",reason=FieldValueForbidden,fieldPath=".stages"
// +kubebuilder:validation:XValidation:rule="self.scope != 'Stage' || has(self.stages) || !has(self.placementSelector) && !has(self.namespaceSelector)",message="a window of scope Stage without stages counts for the stages of strategies that name it in windows: add stages, or remove placementSelector and namespaceSelector",reason=FieldValueRequired,fieldPath=".stages"
// +kubebuilder:validation:XValidation:rule="has(self.weekly) || has(self.monthly) || has(self.dates) || has(self.cron)",message="a window needs at least one entry in weekly, monthly, dates or cron",reason=FieldValueRequired,fieldPath=".weekly"
// +kubebuilder:validation:XValidation:rule="!has(self.lastStartBefore) || self.type == 'Allow'",message="lastStartBefore belongs to type Allow: nothing starts in an opening of a Deny anyway",reason=FieldValueForbidden,fieldPath=".lastStartBefore"
type RolloutWindowSpec struct {
	// Type is Allow or Deny. In the openings of a Deny no cluster that it is about starts. Where there are Allows of a scope
	// for a cluster, it starts only while one of that scope is open; each scope that has Allows has to be open.
	// +required
	Type WindowType `json:"type"`

	// Scope says what the window is about: Fleet, everything; Placement, the placements that placementSelector and namespaceSelector select;
	// Stage, the stages of update runs that stages names, and those whose strategy names the window in stages[].windows; Cluster, the clusters that clusterSelector selects. It is immutable.
	// +required
	Scope WindowScope `json:"scope"`

	// ClusterSelector selects clusters by the labels of their MemberCluster; {} selects all.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// NamespaceSelector selects placements by the labels of the Namespace that they are in; {} selects all. A
	// ClusterResourcePlacement is in none, and counts as in one without labels. Who may write a placement cannot change these
	// labels, and so cannot leave the window.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// PlacementSelector selects ClusterResourcePlacements and ResourcePlacements by their labels; {} selects all. Who may write a
	// placement may change its labels, but not fleetflow.io/placement-name and fleetflow.io/placement-namespace, which every
	// placement has here.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	PlacementSelector *metav1.LabelSelector `json:"placementSelector,omitempty"`

	// Stages are names of stages of update runs. A window of scope Stage without them counts for stages whose strategy names
	// it, and no others.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Stages []string `json:"stages,omitempty"`

	// TimeZone is the name of a time zone in the IANA data base, such as Europe/Berlin, or UTC. All times of the window are
	// what a clock on the wall shows there. A time that the clock skips counts as the first instant after the gap. Of a
	// time that the clock shows twice, the first counts; only a Deny ends at the second.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(UTC|[A-Z][A-Za-z_]+(/[A-Za-z0-9_+-]+){1,2})$`
	// +kubebuilder:validation:XValidation:rule=`timestamp("2026-01-01T00:00:00Z").getHours(self) >= 0`,message="timeZone must name a time zone of the IANA data base, such as Europe/Berlin",reason=FieldValueInvalid
	TimeZone string `json:"timeZone"`

	// Weekly are openings on days of the week.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Weekly []WeeklyOpening `json:"weekly,omitempty"`

	// Monthly are openings on one day of each month.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Monthly []MonthlyOpening `json:"monthly,omitempty"`

	// Dates are single openings.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Dates []DatedOpening `json:"dates,omitempty"`

	// Cron are openings that begin as an expression of cron says.
	// +listType=atomic
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Cron []CronOpening `json:"cron,omitempty"`

	// Except are dates, such as 2026-12-24. An opening that begins on one of them does not take place.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`self.all(d, timestamp(d + "T00:00:00Z") > timestamp("1970-01-01T00:00:00Z"))`,message="except needs dates of the calendar, such as 2026-12-24",reason=FieldValueInvalid
	// +listType=set
	Except []Date `json:"except,omitempty"`

	// LastStartBefore ends the starts of an Allow so long before each of its closings, such as 30m.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("1m") && duration(self) <= duration("168h")`,message="lastStartBefore must be 1m to 168h: write it like 30m or 1h30m",reason=FieldValueInvalid
	LastStartBefore *Duration `json:"lastStartBefore,omitempty"`

	// Starts are the kinds of starts that the window holds back: Updates, FirstPlacements, Removals, Evictions. All of them, if it
	// is left out.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:default={Updates,FirstPlacements,Removals,Evictions}
	// +listType=set
	Starts []Start `json:"starts,omitempty"`

	// Rollbacks is Gated, which is the default: the window holds update runs back that roll another back, too. Exempt lets those
	// go that take clusters back to nothing but what a run forward had brought that has succeeded.
	// +optional
	// +kubebuilder:default=Gated
	Rollbacks Rollbacks `json:"rollbacks,omitempty"`

	// Message says to people what the window is for. Whatever waits for it repeats the message.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// WindowType says what the openings of a window are for.
//
// +kubebuilder:validation:Enum=Allow;Deny
type WindowType string

const (
	// WindowAllow lets clusters start in the openings alone.
	WindowAllow WindowType = "Allow"
	// WindowDeny lets no cluster start in the openings.
	WindowDeny WindowType = "Deny"
)

// WindowScope says what a window is about.
//
// +kubebuilder:validation:Enum=Fleet;Placement;Stage;Cluster
type WindowScope string

const (
	// WindowFleet is about everything.
	WindowFleet WindowScope = "Fleet"
	// WindowPlacement is about the placements selected.
	WindowPlacement WindowScope = "Placement"
	// WindowStage is about the stages named.
	WindowStage WindowScope = "Stage"
	// WindowCluster is about the clusters selected.
	WindowCluster WindowScope = "Cluster"
)

// WeeklyOpening opens a window on days of the week.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",message="start and end are the same time: a whole day is 00:00 to 24:00",reason=FieldValueInvalid,fieldPath=".end"
type WeeklyOpening struct {
	// Days are those on which it opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	Days []Weekday `json:"days"`

	DailyHours `json:",inline"`
}

// MonthlyOpening opens a window on one day of each month.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",message="start and end are the same time: a whole day is 00:00 to 24:00",reason=FieldValueInvalid,fieldPath=".end"
type MonthlyOpening struct {
	// Week says which of the month's days of that name is meant: First, Second, Third, Fourth or Last.
	// +required
	Week WeekOfMonth `json:"week"`

	// Day is the day of the week: Mon, Tue, Wed, Thu, Fri, Sat or Sun.
	// +required
	Day Weekday `json:"day"`

	// OffsetDays moves the opening so many days on: Second, Tue and 1 are the day after the second Tuesday.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	OffsetDays int32 `json:"offsetDays,omitempty"`

	DailyHours `json:",inline"`
}

// DailyHours are the times at which an opening begins and ends.
type DailyHours struct {
	// Start is when it opens, such as 22:00.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// End is when it closes, such as 06:00: on the next day unless it is later than start. 24:00 is the end of the day.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	End string `json:"end"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// WeekOfMonth says which of the days of one name in a month is meant.
//
// +kubebuilder:validation:Enum=First;Second;Third;Fourth;Last
type WeekOfMonth string

// DatedOpening opens a window once.
//
// +kubebuilder:validation:XValidation:rule=`timestamp(self.start + ":00Z") < timestamp(self.end + ":00Z")`,message="start and end must be dates of the calendar, and start before end",reason=FieldValueInvalid,fieldPath=".end"
type DatedOpening struct {
	// Start is when it opens, such as 2026-12-18T00:00.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}$`
	Start string `json:"start"`

	// End is when it closes, such as 2027-01-05T00:00.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}$`
	End string `json:"end"`
}

// CronOpening opens a window as an expression of cron says.
type CronOpening struct {
	// Expression has the five fields minute, hour, day of the month, month and day of the week, as in CronJobs:
	// 0 22 * * 1-5 is 22:00 from Monday to Friday.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches("^ *[0-9A-Za-z*?,/-]+( +[0-9A-Za-z*?,/-]+){4} *$")`,message="expression needs the five fields minute, hour, day of the month, month and day of the week, such as 0 22 * * 1-5; time zones (TZ=, CRON_TZ=) belong in timeZone, and @every, @reboot and the like are not taken",reason=FieldValueInvalid
	Expression string `json:"expression"`

	// Duration is how long an opening takes, such as 8h, by the time that passes.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("1m") && duration(self) <= duration("168h")`,message="duration must be 1m to 168h: write it like 30m, 8h or 1h30m",reason=FieldValueInvalid
	Duration Duration `json:"duration"`
}

// Date is a day of the calendar, such as 2026-12-24.
//
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
type Date string

// WindowStarts says whether a window lets clusters start.
//
// +kubebuilder:validation:Enum=Allowed;Held
type WindowStarts string

const (
	// StartsAllowed lets clusters start.
	StartsAllowed WindowStarts = "Allowed"
	// StartsHeld lets none start.
	StartsHeld WindowStarts = "Held"
)

// RolloutWindowStatus says whether an opening of a window takes place, what that means for starts, and when it changes.
type RolloutWindowStatus struct {
	// Active is true while an opening of the window takes place; openings of an Allow end lastStartBefore before they close. A window
	// that is not Accepted lets nothing start: an Allow counts as not active, a Deny as active.
	// +optional
	Active bool `json:"active"`

	// Starts is Allowed if the window, by itself, lets clusters that it is about start now, and Held if it does not: an Allow holds
	// them while it is not active, a Deny while it is.
	// +optional
	Starts WindowStarts `json:"starts,omitempty"`

	// NextTransitionTime is when Active changes next; without it, time alone never changes it.
	// +optional
	NextTransitionTime *metav1.Time `json:"nextTransitionTime,omitempty"`

	// NextOpenTime is when the window opens next; if it is active, after that.
	// +optional
	NextOpenTime *metav1.Time `json:"nextOpenTime,omitempty"`

	// NextCloseTime is when the opening ends that takes place now, or else the next one.
	// +optional
	NextCloseTime *metav1.Time `json:"nextCloseTime,omitempty"`

	// NextCloseReason is OpeningEnds, or LastStartBefore if the starts end before the opening does.
	// +optional
	NextCloseReason string `json:"nextCloseReason,omitempty"`

	// MatchedClusters is the number of clusters that a window of scope Fleet or Cluster is about.
	// +optional
	MatchedClusters *int32 `json:"matchedClusters,omitempty"`

	// Conditions: Accepted is False if the window can not be followed, with the reason UnknownTimeZone, InvalidEntry,
	// InvalidSelector, NeverOpens or TooManyWindows. Reachable is False if it is not accepted, if an Allow does not open within the
	// next 32 days, and if a Deny never opens any more.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Holds reports whether the window is about a kind of start.
func (w *RolloutWindow) Holds(start Start) bool { return includes(w.Spec.Starts, start) }

// RolloutWindows is what RolloutWindows are in URLs.
var RolloutWindows = schema.GroupResource{Group: GroupName, Resource: "rolloutwindows"}

// Conditions of RolloutWindows.
const (
	ConditionTypeReachable = "Reachable" // the window opens in the next 32 days, a Deny ever
)

// Reasons of the conditions of RolloutWindows.
const (
	ReasonUnknownTimeZone = "UnknownTimeZone" // the hub agent knows no such time zone
	ReasonInvalidEntry    = "InvalidEntry"    // an entry can not be read
	ReasonInvalidSelector = "InvalidSelector" // a selector can not be read
	ReasonNeverOpens      = "NeverOpens"      // no entry ever opens the window
	ReasonTooManyWindows  = "TooManyWindows"  // there are more windows than are followed
	ReasonOpensSoon       = "OpensSoon"       // the window is open, or opens in the next 32 days
	ReasonOpensLater      = "OpensLater"      // a Deny opens, but not in the next 32 days
	ReasonNoOpeningSoon   = "NoOpeningSoon"   // an Allow does not open in the next 32 days, or a Deny never
	ReasonNotAccepted     = "NotAccepted"     // the window is not followed
)

// Values of nextCloseReason.
const (
	CloseOpeningEnds     = "OpeningEnds"     // the opening ends
	CloseLastStartBefore = "LastStartBefore" // the opening goes on without starts
)

// MaxRolloutWindows is how many windows are followed, the oldest first; those beyond are not Accepted.
const MaxRolloutWindows = 200
