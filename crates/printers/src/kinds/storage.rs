//! Volumes and where they come from.

use jiff::Timestamp;

use crate::column::{AGE, NAME};
use crate::fields::Fields;
use crate::format::{NONE, UNSET, age, join, or, quantity};
use crate::printer::BuiltIn;
use crate::{Column, Printer, Row};

/// CSIStorageCapacity is not here: upstream wrote a printer for it and does not use it.
pub(super) fn printer(kind: &str) -> Option<&'static dyn Printer> {
    match kind {
        "StorageClass" => Some(&STORAGE_CLASS),
        "VolumeAttributesClass" => Some(&VOLUME_ATTRIBUTES_CLASS),
        "VolumeAttachment" => Some(&VOLUME_ATTACHMENT),
        "CSINode" => Some(&CSI_NODE),
        "CSIDriver" => Some(&CSI_DRIVER),
        _ => None,
    }
}

/// The annotation that was the storage class of volumes and claims before they had a field for it.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The annotations that make a storage class the default one.
const IS_DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// The access modes and their short names, in the order in which they are shown.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

const ATTRIBUTES_CLASS: Column =
    Column::string("VolumeAttributesClass", "Class of the volume's changeable attributes.");

const VOLUME_MODE: Column =
    Column::wide("VolumeMode", "Whether the volume is a file system or a block device.");

fn access_modes(object: Fields<'_>) -> String {
    let has = |mode: &str| object.texts("accessModes").any(|has| has == mode);
    join(ACCESS_MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short), ",")
}

fn storage_class_name(object: Fields<'_>) -> &str {
    object.annotation(BETA_CLASS).unwrap_or_else(|| object.at("spec").text("storageClassName"))
}

fn attributes_class_name(object: Fields<'_>) -> &str {
    object.at("spec").optional_text("volumeAttributesClassName").unwrap_or(UNSET)
}

fn volume_mode(object: Fields<'_>) -> &str {
    object.at("spec").optional_text("volumeMode").unwrap_or("Filesystem")
}

fn phase(object: Fields<'_>) -> &str {
    match object.is_deleted() {
        true => "Terminating",
        false => object.at("status").text_or("phase", "Pending"),
    }
}

pub(super) static PERSISTENT_VOLUME: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Capacity", "Size of the volume."),
        Column::string("Access Modes", "Who may mount it, and how."),
        Column::string("Reclaim Policy", "What becomes of it when it is released."),
        Column::string("Status", "Whether it is free, bound or released."),
        Column::string("Claim", "Claim that it is bound to."),
        Column::string("StorageClass", "Storage class of the volume."),
        ATTRIBUTES_CLASS,
        Column::string("Reason", "Why it failed."),
        AGE,
        VOLUME_MODE,
    ],
    print: persistent_volume,
};

fn persistent_volume(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    let claim =
        spec.present("claimRef").map(|claim| format!("{}/{}", claim.text("namespace"), claim.text("name")));
    row![
        object.name(),
        quantity(spec.at("capacity"), "storage"),
        access_modes(spec),
        spec.text_or("persistentVolumeReclaimPolicy", "Retain"),
        phase(object),
        claim.unwrap_or_default(),
        storage_class_name(object),
        attributes_class_name(object),
        object.at("status").text("reason"),
        age(object, now),
        volume_mode(object),
    ]
}

pub(super) static PERSISTENT_VOLUME_CLAIM: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Status", "Whether a volume was found."),
        Column::string("Volume", "Volume that it is bound to."),
        Column::string("Capacity", "Size of the volume."),
        Column::string("Access Modes", "Who may mount it, and how."),
        Column::string("StorageClass", "Storage class of the claim."),
        ATTRIBUTES_CLASS,
        AGE,
        VOLUME_MODE,
    ],
    print: persistent_volume_claim,
};

/// Size and modes are those of the volume; there are none until it is found.
fn persistent_volume_claim(object: Fields<'_>, now: Timestamp) -> Row {
    let status = object.at("status");
    let volume = object.at("spec").text("volumeName");
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (quantity(status.at("capacity"), "storage"), access_modes(status)),
    };
    row![
        object.name(),
        phase(object),
        volume,
        capacity,
        modes,
        storage_class_name(object),
        attributes_class_name(object),
        age(object, now),
        volume_mode(object),
    ]
}

static STORAGE_CLASS: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::string("Provisioner", "Who makes the volumes."),
        Column::string("ReclaimPolicy", "What becomes of volumes that are released."),
        Column::string("VolumeBindingMode", "Whether volumes are made at once or for the first pod."),
        Column::string("AllowVolumeExpansion", "Whether volumes can grow."),
        AGE,
    ],
    print: storage_class,
};

fn storage_class(object: Fields<'_>, now: Timestamp) -> Row {
    let default = IS_DEFAULT_CLASS.iter().any(|annotation| object.annotation(annotation) == Some("true"));
    row![
        format!("{}{}", object.name(), if default { " (default)" } else { "" }),
        object.text("provisioner"),
        object.optional_text("reclaimPolicy").unwrap_or("Delete"),
        object.optional_text("volumeBindingMode").unwrap_or("Immediate"),
        object.flag("allowVolumeExpansion"),
        age(object, now),
    ]
}

static VOLUME_ATTRIBUTES_CLASS: BuiltIn = BuiltIn {
    columns: &[NAME, Column::string("DriverName", "CSI driver that knows the attributes."), AGE],
    print: volume_attributes_class,
};

fn volume_attributes_class(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.text("driverName"), age(object, now)]
}

static VOLUME_ATTACHMENT: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        // Upstream marks the attacher as the name of the object, too.
        Column::naming("Attacher", "CSI driver that attaches the volume."),
        Column::string("PV", "Volume to attach."),
        Column::string("Node", "Node to attach it to."),
        Column::boolean("Attached", "Whether it is attached."),
        AGE,
    ],
    print: volume_attachment,
};

fn volume_attachment(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    row![
        object.name(),
        spec.text("attacher"),
        spec.at("source").text("persistentVolumeName"),
        spec.text("nodeName"),
        object.at("status").flag("attached"),
        age(object, now),
    ]
}

static CSI_NODE: BuiltIn = BuiltIn {
    columns: &[NAME, Column::integer("Drivers", "Number of CSI drivers on the node."), AGE],
    print: csi_node,
};

fn csi_node(object: Fields<'_>, now: Timestamp) -> Row {
    row![object.name(), object.at("spec").count("drivers"), age(object, now)]
}

static CSI_DRIVER: BuiltIn = BuiltIn {
    columns: &[
        NAME,
        Column::boolean("AttachRequired", "Whether volumes must be attached first."),
        Column::boolean("PodInfoOnMount", "Whether the driver wants to know the pod."),
        Column::boolean("StorageCapacity", "Whether the driver tells how much room it has."),
        Column::string("TokenRequests", "Audiences of the tokens the driver wants."),
        Column::boolean("RequiresRepublish", "Whether volumes are published again and again."),
        Column::string("Modes", "Kinds of volumes the driver has."),
        AGE,
    ],
    print: csi_driver,
};

fn csi_driver(object: Fields<'_>, now: Timestamp) -> Row {
    let spec = object.at("spec");
    // An empty list does not survive upstream's storage.
    let audiences = match spec.count("tokenRequests") {
        0 => UNSET.to_owned(),
        _ => join(spec.items("tokenRequests").map(|request| request.text("audience")), ","),
    };
    let modes = match spec.count("volumeLifecycleModes") {
        0 => "Persistent".to_owned(),
        _ => or(join(spec.texts("volumeLifecycleModes"), ","), NONE),
    };
    row![
        object.name(),
        spec.flag_or("attachRequired", true),
        spec.flag("podInfoOnMount"),
        spec.flag("storageCapacity"),
        audiences,
        spec.flag("requiresRepublish"),
        modes,
        age(object, now),
    ]
}
