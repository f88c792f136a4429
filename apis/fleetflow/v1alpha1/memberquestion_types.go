package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// MemberQuestion asks the agent of one member cluster a question. It is in the namespace of the cluster on the hub. The hub agent
// writes it, and the member agent pulls it as it pulls Works, answers it in the status, and applies nothing of it. The hub agent deletes
// it half an hour after the
// last answer to what it is asked for.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Namespaced,shortName=mq,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Answered",type=string,JSONPath=`.status.conditions[?(@.type=="Answered")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Answered")].reason`
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.spec.deadline`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MemberQuestion struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message="a question cannot be changed: ask another",reason=FieldValueForbidden
	Spec MemberQuestionSpec `json:"spec"`

	// Status is what the member has answered.
	// +optional
	Status MemberQuestionStatus `json:"status,omitempty"`
}

// QuestionType is the type of a MemberQuestion.
type QuestionType string

const (
	// QuestionRehearse asks what a change would do on the cluster.
	QuestionRehearse QuestionType = "Rehearse"
	// QuestionPullImages asks the cluster to pull the images of a change, and which of them it has then.
	QuestionPullImages QuestionType = "PullImages"
)

// MemberQuestionSpec is what is asked.
//
// +kubebuilder:validation:XValidation:rule=`has(self.rehearse) == (self.type == "Rehearse")`,message="a question of type Rehearse needs rehearse, and no other question has it",reason=FieldValueInvalid,fieldPath=".rehearse"
// +kubebuilder:validation:XValidation:rule=`has(self.pullImages) == (self.type == "PullImages")`,message="a question of type PullImages needs pullImages, and no other question has it",reason=FieldValueInvalid,fieldPath=".pullImages"
type MemberQuestionSpec struct {
	// Type of the question: Rehearse or PullImages.
	// +required
	// +kubebuilder:validation:Enum=Rehearse;PullImages
	Type QuestionType `json:"type"`

	// Deadline is when the answer is of no use any more: a member answers nothing after it.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// AskedFor is the object of the hub that the answer is for.
	// +required
	AskedFor QuestionOrigin `json:"askedFor"`

	// Rehearse is the change of a question of type Rehearse.
	// +optional
	Rehearse *RehearseQuestion `json:"rehearse,omitempty"`

	// PullImages is what a question of type PullImages has pulled.
	// +optional
	PullImages *PullImagesQuestion `json:"pullImages,omitempty"`
}

// QuestionOrigin is the object of the hub that an answer is for.
type QuestionOrigin struct {
	// Kind of the object: ClusterRehearsal or Rehearsal.
	// +required
	Kind string `json:"kind"`

	// Namespace of the object; empty if it is in none.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	Name string `json:"name"`

	// UID of the object.
	// +required
	UID types.UID `json:"uid"`
}

// RehearseQuestion is a change of which a member says what it would do there.
type RehearseQuestion struct {
	// Revision is the index of the resource snapshot that the change brings.
	// +required
	Revision string `json:"revision"`

	// Strategy is how the objects would be applied.
	// +optional
	Strategy *placementv1beta1.ApplyStrategy `json:"strategy,omitempty"`

	// Works are the names of the Works that the placement would have on the cluster after the change, in the order of their parts.
	// What their objects would be is in Manifests.
	// +listType=atomic
	// +optional
	Works []RehearsedWork `json:"works,omitempty"`

	// RemovedWorks are the names of the Works that the change would remove, with all that was applied for them.
	// +listType=set
	// +optional
	RemovedWorks []string `json:"removedWorks,omitempty"`

	// KeepRemoved says that what the change would take out of Works is left on the cluster.
	// +optional
	KeepRemoved bool `json:"keepRemoved,omitempty"`

	// Manifests is the list of lists of manifests of Works, in the order of Works, as JSON that is compressed by gzip. Overrides and
	// envelopes of the cluster are in it already.
	// It has no format in its schema: rules of API servers cannot read the bytes of such a text if it has a slash.
	// +kubebuilder:validation:MaxLength=1400000
	// +kubebuilder:validation:Format=""
	// +optional
	Manifests []byte `json:"manifests,omitempty"`
}

// PullImagesQuestion has the images of a change.
type PullImagesQuestion struct {
	// Revision is the index of the resource snapshot that the change brings.
	// +required
	Revision string `json:"revision"`

	// Pods are the images of Pods that would run on the same nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Pods []ImagesOfPods `json:"pods,omitempty"`

	// OmittedImages is how many images the question has no room for.
	// +optional
	OmittedImages int32 `json:"omittedImages,omitempty"`
}

// ImagesOfPods are images of Pods of a namespace that would run on the same nodes.
type ImagesOfPods struct {
	// Namespace of the Pods.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Images that the Pods have.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Images []string `json:"images"`

	// PullPolicy of the Pods: Always or IfNotPresent. Without it, the API server chooses one by the name of the image.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`

	// PullSecrets are the names of the imagePullSecrets of the Pods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	PullSecrets []string `json:"pullSecrets,omitempty"`

	// NodeName is the node of the Pods, if they say so themselves.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// NodeSelector of the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// RequiredNodes is the node affinity that the Pods require.
	// +optional
	RequiredNodes *corev1.NodeSelector `json:"requiredNodes,omitempty"`

	// Tolerations of the Pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// RehearsedWork is a Work as the change would leave it.
type RehearsedWork struct {
	// Name of the Work.
	// +required
	Name string `json:"name"`

	// Manifests is how many manifests it would have.
	// +optional
	Manifests int32 `json:"manifests"`
}

// MemberQuestionStatus is what a member has answered.
type MemberQuestionStatus struct {
	// Conditions: Answered is True with the reason Answered. It is False with the reason QuestionUnknown if the agent has no answer to
	// questions of the type, InvalidQuestion if it cannot read the question, DeadlineExceeded if it had no time to answer, Declined if the
	// owner of the cluster lets it answer none.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// AnsweredAt is when the member has looked, by its own clock.
	// +optional
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`

	// Rehearsal is the answer to a question of type Rehearse.
	// +optional
	Rehearsal *RehearsalAnswer `json:"rehearsal,omitempty"`

	// Images is the answer to a question of type PullImages.
	// +optional
	Images *PulledImages `json:"images,omitempty"`
}

// PulledImages says which images a cluster has pulled.
type PulledImages struct {
	// Revision that the answer is about.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Images that were asked for.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Images []PulledImage `json:"images,omitempty"`
}

// PulledImage is an image that a cluster was to pull.
type PulledImage struct {
	// Image by its name.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// Outcome is pulled if every node that was asked has the image, refused if a registry has refused it to one of them, else unknown.
	// +required
	Outcome RehearsalOutcome `json:"outcome"`

	// Nodes is how many nodes were to have the image.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// Pulled is how many of them have it.
	// +optional
	Pulled int32 `json:"pulled,omitempty"`

	// Message says why not all have it, in the words of who refuses: at most 256 bytes, without line breaks.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RehearsalAnswer says what a change would do on a cluster.
type RehearsalAnswer struct {
	// Revision that the answer is about.
	// +optional
	Revision string `json:"revision,omitempty"`

	// Counts say how many objects have each outcome, also those that Objects has no room for.
	// +optional
	Counts RehearsalCounts `json:"counts,omitempty"`

	// Objects is the list of objects with their outcomes (RehearsedObject), in the order in which they would be applied, as JSON that is
	// compressed by gzip. What would be refused comes before what would not if there is no room for all of them.
	// +kubebuilder:validation:MaxLength=88000
	// +optional
	Objects []byte `json:"objects,omitempty"`

	// Omitted is how many objects Objects has no room for.
	// +optional
	Omitted int32 `json:"omitted,omitempty"`

	// Digest is the SHA-256 of what was found, in hexadecimal: two answers with the same digest say the same of the same objects. Words of
	// messages and generations of objects are left out, as they change by themselves.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
}

// RehearsalCounts say how many objects, or clusters, have each outcome.
type RehearsalCounts struct {
	// Same would not change.
	// +optional
	Same int32 `json:"same"`
	// Pulled have their images.
	// +optional
	Pulled int32 `json:"pulled,omitempty"`
	// Changes would change.
	// +optional
	Changes int32 `json:"changes"`
	// Creates would come to be.
	// +optional
	Creates int32 `json:"creates"`
	// Removes would be removed.
	// +optional
	Removes int32 `json:"removes"`
	// Refused would be refused by the cluster.
	// +optional
	Refused int32 `json:"refused"`
	// Conflicts belong to another owner, or another manager has a field of them.
	// +optional
	Conflicts int32 `json:"conflicts"`
	// Unknown could not be found out.
	// +optional
	Unknown int32 `json:"unknown"`
}

// RehearsalOutcome is what a change would do to an object.
type RehearsalOutcome string

// Outcomes, in the order in which they matter: that of a cluster is the first that an object of it has.
const (
	RehearsalRefused   RehearsalOutcome = "refused"
	RehearsalConflicts RehearsalOutcome = "conflicts"
	RehearsalUnknown   RehearsalOutcome = "unknown"
	RehearsalRemoves   RehearsalOutcome = "removes"
	RehearsalCreates   RehearsalOutcome = "creates"
	RehearsalChanges   RehearsalOutcome = "changes"
	RehearsalSame      RehearsalOutcome = "same"
	RehearsalPulled    RehearsalOutcome = "pulled"
)

// RehearsedObject is an object of a change, and what the change would do to it. Values of Secrets are not in it.
type RehearsedObject struct {
	// Object that the change is about.
	// +required
	Object placementv1beta1.WorkResourceIdentifier `json:"object"`
	// Outcome of it.
	// +required
	Outcome RehearsalOutcome `json:"outcome"`
	// By names who refuses, who has it, or who has the field: the API server, an admission webhook, an owner, a manager.
	// +optional
	By string `json:"by,omitempty"`
	// Message says why, in the words of who refuses: at most 512 bytes, without line breaks.
	// +optional
	Message string `json:"message,omitempty"`
	// Fields that would change, as JSON pointers: at most 20.
	// +optional
	// +listType=atomic
	Fields []RehearsedField `json:"fields,omitempty"`
	// OmittedFields is how many more there are.
	// +optional
	OmittedFields int32 `json:"omittedFields,omitempty"`
	// Drifted are the fields that differ from what was applied last, which the change would put right. They are not in Fields.
	// +optional
	// +listType=atomic
	Drifted []string `json:"drifted,omitempty"`
	// Generation of the object that was seen; 0 if there is none.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// RehearsedField is a field that would change.
type RehearsedField struct {
	// Path of the field, as a JSON pointer.
	// +required
	Path string `json:"path"`
	// From and To are the values, texts as they are and others as JSON, cut off after 128 bytes. Those of Secrets, and of fields that are
	// named like one, are not told.
	// +optional
	From string `json:"from,omitempty"`
	// To is what it would be.
	// +optional
	To string `json:"to,omitempty"`
}

// ConditionTypeAnswered is the condition of a MemberQuestion that says whether it is answered.
const ConditionTypeAnswered = "Answered"

// Reasons of the condition Answered.
const (
	ReasonQuestionAnswered = "Answered"         // the answer is in the status
	ReasonQuestionUnknown  = "QuestionUnknown"  // the agent has no answer to questions of the type
	ReasonQuestionInvalid  = "InvalidQuestion"  // the agent cannot read the question
	ReasonQuestionExpired  = "DeadlineExceeded" // the agent had no time to answer before the deadline
	ReasonQuestionDeclined = "Declined"         // the owner of the cluster lets the agent answer no questions
)
